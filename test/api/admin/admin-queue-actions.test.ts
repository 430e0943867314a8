import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';
import request from 'supertest';

import type { ReplayCall } from '../../../api/admin/requests/replay-failed.ts';
import { skip } from '../../../api/admin/requests/replay-rules.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { ADMIN_TOKEN, errorOf } from '../../support/admin.ts';
import { openTestRedis } from '../../support/stores.ts';
import { useAdmin } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const READER = 'reader-0123456789abcdef0123456789abcdef';
const replays: ReplayCall[] = [];
/** Of which a replay runs. */
const replayable = new Set<string>();
const outcomeOf = (id: string) => (replayable.has(id) ? { kind: 'replayed' as const } : skip('not_replayable'));
const admin = useAdmin({
  replayFailed(call) {
    replays.push(call);
    const ids = call.filter.requestIds ?? [...replayable];
    const requests = ids.map((requestId) => ({ requestId, failed: undefined, outcome: outcomeOf(requestId) }));
    return Promise.resolve({ matched: ids.length, requests, next: undefined });
  },
  adminTokens: [
    { name: 'admin', role: 'write', token: ADMIN_TOKEN },
    { name: 'grafana', role: 'read', token: READER },
  ],
});
const NAME = 'shard-1.interactive';
const TENANT = 'ten_000000000000000000000000';

let connection: RedisClient;
beforeAll(async () => {
  connection = await openTestRedis('worker');
});
afterAll(async () => {
  await connection.quit();
});
const interactive = () => admin.queues.queue(1, 'interactive');
beforeEach(async () => {
  await interactive().obliterate({ force: true });
  await admin.compliance.queue.obliterate({ force: true });
});
afterEach(() => {
  expect(admin.errors).toEqual([]);
});

const act = (path: string, token = ADMIN_TOKEN) =>
  request(admin.app).put(`/admin/queues/api/${path}`).auth(token, { type: 'bearer' });
const auditLog = async () => {
  const { body } = await admin.call('get', '/admin/v1/audit_log?limit=100');
  return body.data as { actor: string; path: string; target: string; status: number | null }[];
};

/** Adds a job to a queue and fails it. */
async function failJob(
  queue: ReturnType<typeof interactive> | typeof admin.compliance.queue,
  id: string,
): Promise<void> {
  const worker = new Worker(queue.name, () => Promise.reject(new Error('no luck')), {
    connection,
    prefix: queue.opts.prefix ?? '',
  });
  await waitFor(async () => ((await queue.getJobState(id)) === 'failed' ? true : undefined), 'the failed job');
  await worker.close();
}

describe('an operator on the board', () => {
  it('pauses a queue and resumes it, which the figures show and the audit log names', async () => {
    expect((await act(`queues/${NAME}/pause`)).status).toBe(200);
    const paused = await admin.call('get', '/admin/v1/queues');
    expect(paused.body.data[0]).toMatchObject({ id: '1:interactive', paused: true });
    expect(paused.body.data[1]).toMatchObject({ id: '0:interactive', paused: false });

    admin.clock.advance(1_000);
    expect((await act(`queues/${NAME}/resume`)).status).toBe(200);
    const resumed = await admin.call('get', '/admin/v1/queues');
    expect(resumed.body.data[0]).toMatchObject({ paused: false });

    const lines = await waitFor(async () => {
      const log = await auditLog();
      return log.length >= 2 && log[0]?.status !== null && log[1]?.status !== null ? log : undefined;
    }, 'the audit log');
    expect(lines.slice(0, 2)).toMatchObject([
      { actor: 'admin', path: `/admin/queues/api/queues/${NAME}/resume`, target: NAME, status: 200 },
      { actor: 'admin', path: `/admin/queues/api/queues/${NAME}/pause`, target: NAME, status: 200 },
    ]);
  });

  it('runs a failed job of an export or a deletion again', async () => {
    const id = newId('del');
    await admin.compliance.add(id, { tenantId: TENANT, jobId: id });
    await failJob(admin.compliance.queue, id);

    expect((await act(`queues/compliance/${id}/retry`)).status).toBe(204);

    expect(await admin.compliance.queue.getJobState(id)).toBe('waiting');
  });

  it('replays a failed chat request, or all of its shard, and BullMQ never runs its job again', async () => {
    const [one, other] = [newId('req'), newId('req')];
    await interactive().add('chat', { tenantId: TENANT }, { jobId: one });
    await failJob(interactive(), one);
    replayable.add(one);

    const replayed = await act(`queues/${NAME}/${one}/retry`);
    const refused = await act(`queues/${NAME}/${other}/retry`);
    const all = await act(`queues/${NAME}/retry/failed`);

    expect([replayed.status, refused.status, all.status]).toEqual([204, 409, 204]);
    expect(refused.body).toMatchObject({ code: 'conflict', error: expect.stringContaining('has ended') });
    expect(replays.map(({ filter }) => filter)).toEqual([{ requestIds: [one] }, { requestIds: [other] }, { shard: 1 }]);
    expect(await interactive().getJobState(one)).toBe('failed');
    expect(await auditLog()).toEqual(
      expect.arrayContaining(
        [
          { path: `/admin/queues/api/queues/${NAME}/${one}/retry`, status: 204 },
          { path: `/admin/queues/api/queues/${NAME}/${other}/retry`, status: 409 },
          { path: `/admin/queues/api/queues/${NAME}/retry/failed`, status: 204 },
        ].map((line) => expect.objectContaining({ actor: 'admin', ...line })),
      ),
    );
  });

  it.each(['clean/promote', 'clean/retry', 'retry/promote', 'retry/retry', 'promote/retry'])(
    'reaches no other action of the board by a path that looks like one of a job: %s',
    async (path) => {
      for (const queue of [NAME, 'compliance']) {
        const refused = await act(`queues/${queue}/${path}`);
        expect([refused.status, refused.headers['allow']]).toEqual([405, 'GET, HEAD']);
        expect(refused.body.error).toMatch(/^The board pauses/);
      }
    },
  );

  it('changes nothing with a token that may only read, and sees a board without buttons', async () => {
    for (const path of [
      `queues/${NAME}/pause`,
      'queues/pause',
      'queues/compliance/retry/failed',
      `queues/${NAME}/retry/failed`,
    ]) {
      const response = await act(path, READER);
      expect(response.status).toBe(403);
      expect(errorOf(response)['code']).toBe('endpoint_not_allowed');
    }
    expect(await interactive().isPaused()).toBe(false);
    const { body } = await request(admin.app).get('/admin/queues/api/queues').auth(READER, { type: 'bearer' });
    const queues = body.queues as { readOnlyMode: boolean; allowRetries: boolean }[];
    expect(queues).toHaveLength(3);
    for (const queue of queues) expect(queue).toMatchObject({ readOnlyMode: true, allowRetries: false });
  });
});

it('a failed job of a deletion is not in the way of the next one', async () => {
  const id = newId('del');
  await admin.compliance.add(id, { tenantId: TENANT, jobId: id });
  await failJob(admin.compliance.queue, id);

  await admin.compliance.add(id, { tenantId: TENANT, jobId: id });

  expect(await admin.compliance.queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 1, failed: 0 });
});
