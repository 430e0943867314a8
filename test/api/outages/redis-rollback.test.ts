import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, postChat, requestIdOf, waitUntil } from '../../support/chat.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useRollback } from '../../support/use-rollback.ts';

describe('what an ingress has told a Redis that comes back without its last second', () => {
  const { proxy, direct, service, snapshot, rollBack } = useRollback({ workers: 0 });

  const stateOf = (requestId: string) => direct.hget(service.keyspace.shard(0).record(requestId), 'state');

  it('is told again that a request was taken back whose caller was told 503', async () => {
    const { key } = await service.startTenant();
    await postChat(service.app, key, chatOf('Known', { model: 'none' }));
    const lost = proxy.cutNextReply('Taken back').then(() => {
      proxy.set('reset');
    });
    const refused = await postChat(service.app, key, chatOf('Taken back'));
    await lost;
    const requestId = requestIdOf(refused);
    expect([refused.status, await stateOf(requestId)]).toEqual([503, 'accepted']);
    const before = await snapshot();
    proxy.set('pass');
    await waitUntil(async () => (await stateOf(requestId)) === 'void', 'the request to be taken back');

    await rollBack(before);

    expect(await waitUntil(async () => (await stateOf(requestId)) === 'void', 'that again')).toBe(true);
    expect(await direct.zcard(service.keyspace.shard(0).prioritized('interactive'))).toBe(0);
  });

  it('is told in time that an asynchronous request is not in line, and takes it back later', async () => {
    const { key } = await service.startTenant();
    // Its text reaches Redis behind the admission only.
    void proxy.cutNextReply('Cut off').then(() => {
      proxy.set('reset');
    });
    const start = performance.now();

    const refused = await postChat(service.app, key, chatOf('Cut off')).set('Prefer', 'respond-async').timeout(5_000);

    // 2 s, and what this machine takes beside it.
    expect([refused.status, performance.now() - start < 2_500]).toEqual([503, true]);
    const requestId = requestIdOf(refused);
    expect(await stateOf(requestId)).toBe('accepted');
    proxy.set('pass');
    await waitUntil(async () => (await stateOf(requestId)) === 'void', 'its end');
    expect(await direct.zscore(service.keyspace.shard(0).prioritized('interactive'), requestId)).toBeNull();
  });

  it('is told again of credits that were granted', async () => {
    const { tenantId } = await service.startTenant({ credits: 100 });
    const book = () => direct.hget(service.keyspace.shard(0).account(tenantId), 'ledgerBalance');
    const before = await snapshot();
    const grant = { credits: 50, reason: 'More' };
    expect((await service.admin('post', `/tenants/${tenantId}/credits`, grant)).status).toBe(201);
    expect(await book()).toBe('150000000');

    await rollBack(before);

    expect(await waitUntil(async () => (await book()) === '150000000', 'the grant')).toBe(true);
  });

  it('lets a tenant in again that was suspended and is not any more', async () => {
    const { tenantId, key } = await service.startTenant();
    const look = async () => (await apiOf(service, key)('get', '/models')).status;
    const become = async (status: string) => {
      expect((await service.admin('patch', `/tenants/${tenantId}`, { status })).status).toBe(200);
    };
    await become('suspended');
    const before = await snapshot();
    await become('active');
    expect(await look()).toBe(200);

    await rollBack(before);

    expect(await waitUntil(async () => (await look()) === 200, 'the tenant to be let in')).toBe(true);
  });

  it('is told again who has signed out of the administration', async () => {
    const token = 'an-administrator-token-of-tests-0123456789';
    const signedIn = await request(service.adminApp).post('/admin/sign-in').type('form').send({ token });
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
    const look = async () => (await request(service.adminApp).get('/admin/queues').set('Cookie', cookie)).status;
    expect(await look()).toBe(200);
    await request(service.adminApp).post('/admin/sign-out').set('Cookie', cookie);
    expect(await look()).toBe(401);

    proxy.set('reset');
    const ended = await direct.keys(service.keyspace.administration.endedSession('*'));
    expect(await direct.unlink(...ended)).toBe(1);
    proxy.set('pass');

    expect(await waitUntil(async () => (await look()) === 401, 'the session to be over')).toBe(true);
  });
});
