import { describe, expect, it } from '@jest/globals';

import { LOST } from '../../../shared/contracts/events.ts';
import { dayOf, monthOf } from '../../../shared/domain/pricing.ts';
import { createErasureRepository } from '../../../shared/mongo/compliance/erasure-repository.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import type { FinishInput } from '../../../shared/requests/delivery.ts';
import { createRequestEraser } from '../../../shared/requests/request-eraser.ts';
import { createAnswerCache } from '../../../shared/requests/answers.ts';
import { createEraseDeleted } from '../../../workers/compliance/erase-requests.ts';
import { ENTITY_HASH, IDEMPOTENCY, useRestoreLab } from '../../support/restore-lab.ts';
import { endingOf, FAILED, RATE, RETENTION_MS, SHARD } from '../../support/request-lab.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { waitUntil } from '../../support/wait-for.ts';
import { useStarted } from '../../support/use-service.ts';

const { puts, lab } = useRestoreLab();
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('restore-')));

/** A request that has ended, of which Redis has lost everything; its tenant can pay for it. */
async function lost(sent: readonly string[] = [], more: Partial<FinishInput> = {}) {
  const principal = await lab.tenant(100 * RATE);
  const ended = await puts.ended(principal, sent, more);
  await puts.rollBack();
  return { principal, ...ended };
}

describe('its end', () => {
  it('has its answer again, its key, its place and its list, as nothing had been lost', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, repeat } = await puts.ended(principal, ['Well, ', 'yes. ']);
    const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
    const found = await records.find(principal, request.requestId);
    const read = () =>
      lab.redis.hmget(lab.keys.record(request.requestId), 'seq', 'key', 'month', 'fence', 'idempotency');
    const known = await read();
    await puts.rollBack();

    expect(await repeat()).toBe('replayed');

    expect(await puts.textOf(request)).toBe('Well, yes. Hello');
    // It ends and speaks anew; everything else is what it was.
    const { finishedAt, firstTokenAt, ...same } = { ...found };
    expect(await records.find(principal, request.requestId)).toMatchObject({ ...same, metadataJson: '{"a":"b"}' });
    expect([finishedAt, firstTokenAt]).toEqual([expect.any(Number), expect.any(Number)]);
    expect(await read()).toEqual(known);
    const claim = `${request.requestId} ${IDEMPOTENCY.fingerprint} ${principal.tenantId}`;
    expect(await lab.redis.get(lab.keys.idempotency(IDEMPOTENCY.name))).toBe(claim);
    const list = lab.keys.entityRequests(principal.tenantId, 'an entity');
    expect(await lab.redis.zrange(list, '0', '-1')).toEqual([request.requestId]);
    expect(await lab.redis.pttl(lab.keys.record(request.requestId))).toBeGreaterThan(0);
  });

  it('owes its charge once, pending until it is booked, however often it is said', async () => {
    const { principal, request, repeat } = await lost();

    expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

    const account = lab.keys.account(principal.tenantId);
    expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, pendingMicro: 15 * RATE });
    expect(await lab.redis.hget(account, `pendingTokens:${monthOf(Date.now())}`)).toBe('15');
    expect(await puts.charges()).toEqual([request.requestId]);
    const book = { version: 2, balanceMicro: 85 * RATE, tokensByMonth: {} };
    await lab.accounts.publishBalance(SHARD, principal.tenantId, book, [request.requestId]);
    expect(await repeat()).toBe('known');
    expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 0 });
  });

  it('is told of in channels of its shard alone: a user of Redis has no others, and a node of a cluster neither', async () => {
    const { request, repeat } = await puts.ended(await lab.tenant(100 * RATE));
    await puts.rollBack();
    const tag = /^\{[^}]*\}/.exec(lab.keys.record(request.requestId))?.[0] ?? '';
    const user = uniqueName('narrow-');
    await lab.redis.acl('SETUSER', user, 'on', 'nopass', '~*', '+@all', 'resetchannels', `&${tag}*`);
    await lab.redis.auth(user, 'any');

    const said = await repeat().finally(() => lab.redis.auth('default', 'any'));

    expect(said).toBe('replayed');
    await lab.redis.acl('DELUSER', user);
  });

  it('counts once in the allowance of test keys', async () => {
    const principal = await lab.tenant(0, { mode: 'test' });
    const { request, repeat } = await puts.ended(principal);
    await puts.rollBack();

    expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

    expect(await lab.redis.get(lab.keys.testAllowance(principal.tenantId, dayOf(Date.now())))).toBe('15');
    expect(await puts.charges()).toEqual([request.requestId]);
  });

  it('owes its charge where its answer was brought back from MongoDB before', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, repeat } = await puts.ended(principal);
    const cache = createAnswerCache(lab.redis, lab.keyspace);
    const stored = await cache.read(SHARD, request.requestId);
    if (stored === undefined) throw new Error('It has just ended');
    await puts.rollBack();
    await cache.restore(SHARD, stored, { ttlMs: RETENTION_MS, namedMs: RETENTION_MS });

    expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

    expect(await puts.charges()).toEqual([request.requestId]);
    expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 15 * RATE });
    expect(await puts.textOf(request)).toBe('Hello');
  });

  it('owes it also where its delivery cannot put the request back', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, ref } = await puts.running(principal);
    await lab.requests.append(ref, 1, ['Well, ']);
    const later = { ...request.ref(2), owner: (await lab.run(request, 2)).owner };
    const ending = endingOf(request, 'Hello', { prompt: 10, completion: 5 });
    expect(await lab.requests.finish(later, 1, ending)).toBe(true);
    const cache = createAnswerCache(lab.redis, lab.keyspace);
    const stored = await cache.read(SHARD, request.requestId);
    if (stored === undefined) throw new Error('It has just ended');
    await puts.rollBack();
    await cache.restore(SHARD, stored, { ttlMs: RETENTION_MS, namedMs: RETENTION_MS });

    expect(await lab.requests.replayFinish(later, 1, ending)).toBe('replayed');

    expect(await puts.charges()).toEqual([request.requestId]);
    expect(await puts.textOf(request)).toBe('Well, Hello');
  });

  it('leaves an Idempotency-Key to the request that has it by now', async () => {
    const { request, repeat } = await lost();
    const name = lab.keys.idempotency(IDEMPOTENCY.name);
    await lab.redis.set(name, 'another');

    await repeat();

    expect(await lab.redis.get(name)).toBe('another');
    expect(await lab.redis.hexists(lab.keys.record(request.requestId), 'idempotency')).toBe(0);
  });

  it('keeps nothing of a tenant that keeps nothing, but for whoever may be reading, its charge and that it has ended', async () => {
    const { request, repeat } = await lost(['Well, '], { retentionMs: 0 });

    expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

    expect(await lab.redis.pttl(lab.keys.answer(request.requestId))).toBeLessThanOrEqual(60_000);
    expect(await puts.charges()).toEqual([request.requestId]);
    expect(JSON.stringify(await lab.redis.hgetall(lab.keys.record(request.requestId)))).not.toContain('"a"');
    expect(await lab.redis.get(lab.keys.idempotency(IDEMPOTENCY.name))).not.toContain(IDEMPOTENCY.fingerprint);
  });

  it('stays away where its time was over: then a missing record is nothing that was lost', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, repeat } = await puts.ended(principal, [], { retentionMs: 1 });
    await lab.redis.unlink(lab.keys.record(request.requestId), lab.keys.answer(request.requestId));
    const { finishedAt } = request.settlement(0, 0);
    await waitUntil(() => Date.now() > finishedAt + 1, 'the end of its time');

    await repeat();

    expect(await puts.textOf(request)).toBe('');
    // The book takes it once.
    expect(await puts.charges()).toEqual([request.requestId, request.requestId]);
    expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 15 * RATE });
  });

  it('stays a failure, so that what its caller was told has failed does not run again', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, ref } = await puts.running(principal);
    await lab.requests.finish(ref, 0, FAILED);
    await puts.rollBack();

    expect(await lab.requests.replayFinish(ref, 0, FAILED)).toBe('replayed');

    const state = await lab.redis.hmget(lab.keys.record(request.requestId), 'state', 'status');
    expect(state).toEqual(['done', 'failed']);
    // Its key is free for the next try.
    expect(await lab.redis.exists(lab.keys.idempotency(IDEMPOTENCY.name))).toBe(0);
    expect([await puts.charges(), await lab.figures(principal)]).toMatchObject([[], { heldMicro: 0, pendingMicro: 0 }]);
  });

  it('is written where Redis has the admission without a body, as a worker was quicker than its ingress', async () => {
    const { principal, request, repeat } = await lost();
    await lab.admit({ principal, requestId: request.requestId, withoutBody: true });

    expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

    expect(await puts.charges()).toEqual([request.requestId]);
    expect(await puts.textOf(request)).toBe('Hello');
    expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, pendingMicro: 15 * RATE });
  });

  it('is not charged where its caller was told meanwhile that it failed', async () => {
    const { principal, request, repeat } = await lost();
    expect(await lab.admissions.voidPermanently(request.requestId, principal, LOST)).toBe('missing');

    expect(await repeat()).toBe('superseded');

    expect(await puts.charges()).toEqual([]);
  });

  it.each(['voidPermanently', 'voidRefused'] as const)(
    'is not charged where its caller was told (%s) behind a sweep that told nobody',
    async (tell) => {
      const { principal, request, repeat } = await lost();
      expect(await lab.admissions.void(request.requestId, principal, LOST)).toBe('missing');
      expect(await lab.admissions[tell](request.requestId, principal, LOST)).toBe('void');

      expect(await repeat()).toBe('superseded');

      expect(await puts.charges()).toEqual([]);
    },
  );

  it('is refunded where its caller had been told that it failed, and a worker put it back before anybody said so', async () => {
    const principal = await lab.tenant(100 * RATE);
    const request = await lab.admit({ principal });
    const { owner, seq, terms, now } = await lab.run(request, 1);
    const { tier, mode, endpoint, acceptedAt } = request.envelope;
    const facts = { tier, mode, endpoint, acceptedAt, seq, terms, startedAt: now, deadline: now + 60_000 };
    const ref = { ...request.ref(1), owner, facts, envelope: request.envelope };
    await puts.clear();

    expect(await lab.requests.finish(ref, 0, endingOf(request, 'Hello', { prompt: 10, completion: 5 }))).toBe(true);

    expect(await lab.admissions.voidRefused(request.requestId, principal, LOST)).toBe('gone');
  });

  it('is charged where the request was erased meanwhile, which brings nothing of it back', async () => {
    const { principal, request, repeat } = await lost();
    const eraser = createRequestEraser(lab.redis, lab.keyspace);
    await eraser.erase(SHARD, { tenantId: principal.tenantId, mode: 'live' }, request, Number.MAX_SAFE_INTEGER);

    expect(await repeat()).toBe('replayed');

    expect([await puts.charges(), await puts.textOf(request)]).toEqual([[request.requestId], '']);
  });

  it('is erased again where a deletion has been through that was accepted after it', async () => {
    const { principal, request, ref, repeat } = await lost();
    const erasures = createErasureRepository(mongo);
    const space = { tenantId: principal.tenantId, mode: 'live' } as const;
    await erasures.mark(space, ENTITY_HASH, { seq: (ref.facts?.seq ?? 0) + 1, now: Date.now() });
    const eraseDeleted = createEraseDeleted({ erasures, eraser: createRequestEraser(lab.redis, lab.keyspace) });
    await repeat();
    expect(await puts.textOf(request)).toBe('Hello');

    await eraseDeleted(ref);

    expect([await puts.charges(), await puts.textOf(request)]).toEqual([[request.requestId], '']);
    expect(await lab.redis.exists(lab.keys.idempotency(IDEMPOTENCY.name))).toBe(0);
  });

  it.each([
    ['as the first answer to its end said', 0],
    ['where that answer was lost, and the end was said once more', 1],
  ])('is charged no more than the account could pay, %s', async (_, repeats) => {
    const principal = await lab.tenant(40 * RATE);
    const { request, ref } = await puts.running(principal);
    const owed = { ...endingOf(request, 'a', { prompt: 3, completion: 1_000 }), overdraftMicro: 20 * RATE };
    const endings = Array.from({ length: repeats + 1 }, () => ({ ...owed }));
    for (const ending of endings) expect(await lab.requests.finish(ref, 0, ending)).toBe(true);
    await puts.rollBack();

    expect(await lab.requests.replayFinish(ref, 0, endings.at(-1) ?? owed)).toBe('replayed');

    const [entry] = await lab.outbox.read(SHARD, 'new', 10);
    expect(entry?.record?.costMicro).toBe(60 * RATE);
  });
});
