import { setTimeout as pause } from 'node:timers/promises';

import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { flagOf } from '../../../shared/domain/principal.ts';
import { chatOf, expectUncharged, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import { refusalOf } from '../../support/refusal.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri } from '../../support/stores.ts';
import { useService, useStarted } from '../../support/use-service.ts';

/** docs/spec.md#stores-away: with Redis away, 503 within 2 s; and what this machine takes beside it. */
const LIMIT_MS = 2_500;
const CREDITS = 1_000;

async function timed(call: request.Test): Promise<{ response: request.Response; tookMs: number }> {
  const start = performance.now();
  const response = await call;
  return { response, tookMs: performance.now() - start };
}

describe('with MongoDB away', () => {
  const mongo = useStarted('mongo', () => openTcpProxy(mongoUri(`away${String(process.pid)}`)));

  const service = useService(() => ({ env: { MONGODB_URI: mongo.url } }));
  afterEach(() => {
    mongo.set('pass');
  });

  it.each(['reset', 'silent'] as const)(
    '(%s) a cached key goes on, and what it owes is booked afterwards',
    async (how) => {
      const { key, tenantId } = await service.startTenant();
      expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
      mongo.set(how);

      const response = await postChat(service.app, key, chatOf('Hi'));
      expect(response.status).toBe(200);

      mongo.set('pass');
      const entry = await waitFor(
        () =>
          service.models.ledger
            .findOne({ requestId: response.body.id })
            .lean()
            .catch(() => undefined),
        'the ledger entry',
        15_000,
      );
      expect(entry.tenantId).toBe(tenantId);
    },
  );

  it.each(['reset', 'silent'] as const)('(%s) a key that is not cached is 503, never unknown', async (how) => {
    const { key } = await service.startTenant();
    mongo.set(how);

    const { response, tookMs } = await timed(postChat(service.app, key, chatOf('Hi')));

    expect(refusalOf(response)).toMatchObject({ status: 503, code: 'model_unavailable', limit: 60 });
    expect(tookMs).toBeLessThan(LIMIT_MS);
  });

  it.each(['reset', 'silent'] as const)(
    '(%s) the ingress stays ready at once, and deep health tells the rest',
    async (how) => {
      const { key } = await service.startTenant();
      expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
      mongo.set(how);

      const { response, tookMs } = await timed(request(service.app).get('/health/ready'));

      expect([response.status, response.body]).toEqual([200, { status: 'ok', checks: {} }]);
      // A probe's time limit is one second unless somebody sets another.
      expect(tookMs).toBeLessThan(900);
      expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
      expect((await request(service.adminApp).get('/health/deep')).body).toMatchObject({
        ready: false,
        checks: { redis: 'ok' },
      });
    },
  );

  it('a revocation counts all the same', async () => {
    const { key, keyId } = await service.startTenant();
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
    mongo.set('reset');

    await service.redis.set(service.keyspace.shard(0).blocked(flagOf({ keyId })), '1');

    expect(refusalOf(await postChat(service.app, key, chatOf('Hi')))).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
    });
  });

  it.each(['reset', 'silent'] as const)(
    '(%s) of two asynchronous calls with one Idempotency-Key neither is told that it was accepted',
    async (how) => {
      const tenant = await service.startTenant();
      expect((await postChat(service.app, tenant.key, '{}')).status).toBe(400);
      mongo.set(how);
      const call = () =>
        postChat(service.app, tenant.key, chatOf('Later')).set({ Prefer: 'respond-async', 'Idempotency-Key': 'once' });

      const answers = await Promise.all([call(), call()]);

      expect(answers.map(refusalOf)).toMatchObject([
        { status: 503, code: 'model_unavailable' },
        { status: 503, code: 'model_unavailable' },
      ]);
      // Nothing runs on of which nobody was told.
      const left = () => service.redis.zcard(service.keyspace.shard(0).open(tenant.tenantId));
      await waitUntil(async () => (await left()) === 0, 'both to be taken back');
    },
  );

  it.each(['reset', 'silent'] as const)('(%s) an asynchronous request is refused and costs nothing', async (how) => {
    const tenant = await service.startTenant({ credits: CREDITS });
    expect((await postChat(service.app, tenant.key, '{}')).status).toBe(400);
    service.provider.reset();
    mongo.set(how);

    const response = await postChat(service.app, tenant.key, chatOf('Later')).set('Prefer', 'respond-async');

    expect(refusalOf(response)).toMatchObject({ status: 503, code: 'model_unavailable' });
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
    mongo.set('pass');
    await expectUncharged(service, tenant.tenantId, CREDITS);
    expect(service.provider.stats().calls).toBe(0);
  });

  it.each(['reset', 'silent'] as const)('(%s) whoever waits under an Idempotency-Key has the answer', async (how) => {
    const tenant = await service.startTenant();
    expect((await postChat(service.app, tenant.key, chatOf('Hi'))).status).toBe(200);
    mongo.set(how);

    const response = await postChat(service.app, tenant.key, chatOf('Now')).set('Idempotency-Key', 'order-1');

    expect(response.body.error).toBeUndefined();
    expect(response.status).toBe(200);
  });

  it('shows a streamed answer that came at once before its turn is stored', async () => {
    const { key } = await service.startTenant();
    service.provider.change({ first_token_ms: 300, words: 5 });
    const opening = openStream(service.url, key, chatOf('Hi', { entity_id: 'pupil' }));
    await waitUntil(() => service.provider.stats().in_flight > 0, 'the provider to be asked');
    mongo.set('silent');

    const { read, ended } = await opening;
    await waitUntil(() => !(read.text === ''), 'the text', LIMIT_MS);
    expect(read.finishReason).toBeUndefined();

    mongo.set('pass');
    await ended;
    expect(read.finishReason).toBe('stop');
  });

  it.each(['reset', 'silent'] as const)(
    '(%s) the turn of an answer that comes meanwhile is stored once MongoDB is back',
    async (how) => {
      const { key, tenantId } = await service.startTenant();
      service.provider.change({ first_token_ms: 300, text: 'Yes.' });
      const before = service.provider.stats().calls;
      const asked = postChat(service.app, key, chatOf('Hi', { entity_id: 'pupil' })).then((answer) => answer);
      await waitUntil(() => service.provider.stats().calls > before, 'the provider to be asked');
      mongo.set(how);
      await pause(4_000);
      mongo.set('pass');

      expect((await asked).status).toBe(200);

      service.provider.restore();
      const row = await service.models.entities.findOne({ tenantId, entityId: 'pupil' }).lean();
      expect(row?.messages.map(({ content }) => content)).toEqual(['Hi', 'Yes.']);
    },
  );
});
