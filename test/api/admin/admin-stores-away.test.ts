import { afterAll, afterEach, describe, expect, it } from '@jest/globals';

import request from 'supertest';

import { errorOf, startAdmin } from '../../support/admin.ts';
import type { TestAdmin } from '../../support/admin.ts';

const opened: TestAdmin[] = [];
async function start(): Promise<TestAdmin> {
  const admin = await startAdmin();
  opened.push(admin);
  return admin;
}
afterEach(() => {
  for (const { errors } of opened) expect(errors).toEqual([]);
});
afterAll(async () => {
  for (const admin of opened) {
    await Promise.allSettled([admin.models.tenants.db.close()]);
    if (admin.redis.status === 'ready') await admin.redis.quit();
  }
});

describe('a store that is away', () => {
  it('is 503 with Retry-After when it is MongoDB', async () => {
    const admin = await start();
    await admin.models.tenants.db.close();
    for (const path of ['tenants', 'providers', 'tiers/mobius', 'tenants/ten_000000000000000000000000/keys']) {
      const response = await admin.call('get', `/admin/v1/${path}`);
      expect(response.status).toBe(503);
      expect(response.headers['retry-after']).toBe('1');
      expect(errorOf(response)).toMatchObject({ code: 'model_unavailable', type: 'overloaded_error' });
    }
    expect((await admin.call('post', '/admin/v1/tenants', { name: 'x', credits: 1 })).status).toBe(503);
  });

  it('is 503 when it is Redis, and no half-made tenant appears', async () => {
    const admin = await start();
    await admin.queues.close();
    admin.redis.disconnect();
    const response = await admin.call('post', '/admin/v1/tenants', { name: 'x', credits: 1 });
    expect(response.status).toBe(503);
    expect(await admin.models.tenants.countDocuments()).toBe(0);
    expect((await admin.call('get', '/admin/v1/queues')).status).toBe(503);
    const board = await admin.call('get', '/admin/queues/api/queues');
    expect([board.status, board.headers['retry-after']]).toEqual([503, '1']);
    expect(errorOf(board)).toMatchObject({ code: 'model_unavailable', type: 'overloaded_error' });
  });

  it('keeps an address out that guesses tokens all the same', async () => {
    const admin = await start();
    await admin.queues.close();
    admin.redis.disconnect();
    const guess = () => request(admin.app).get('/admin/v1/tenants').auth('wrong', { type: 'bearer' });
    for (let count = 0; count < 10; count += 1) expect((await guess()).status).toBe(401);

    const refused = await guess();

    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
  });

  it('books no credits that the administrator would book again', async () => {
    const admin = await start();
    const { body } = await admin.call('post', '/admin/v1/tenants', { name: 'x' });
    await admin.queues.close();
    admin.redis.disconnect();
    const response = await admin.call('post', `/admin/v1/tenants/${String(body.id)}/credits`, { credits: 5 });
    expect(response.status).toBe(503);
    expect(await admin.models.ledger.countDocuments()).toBe(0);
  });
});
