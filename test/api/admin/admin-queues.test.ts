import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Job, Worker as BullWorker } from 'bullmq';
import { Worker } from 'bullmq';

import { newId } from '../../../shared/lifecycle/ids.ts';
import { openTestRedis } from '../../support/stores.ts';
import { useAdmin, useStarted } from '../../support/use-service.ts';
import { waitUntil } from '../../support/wait-for.ts';

const admin = useAdmin();
const connection = useStarted('connection', () => openTestRedis('worker'));

beforeEach(() => admin.queues.queue(1, 'interactive').obliterate({ force: true }));
afterEach(() => {
  expect(admin.errors).toEqual([]);
});

const TENANT = 'ten_000000000000000000000000';
const SECRET = 'the words of a pupil';

async function add(data: object = { tenantId: TENANT }): Promise<string> {
  const id = newId('req');
  await admin.queues.queue(1, 'interactive').add('chat', data as { tenantId: string }, { jobId: id });
  return id;
}

/** Runs `count` jobs of shard 1 and resolves when they have ended. */
async function run(count: number, processor: (job: Job) => Promise<unknown>): Promise<void> {
  const worker: BullWorker = new Worker('interactive', processor, { connection, prefix: admin.keyspace.shard(1).tag });
  let left = count;
  await new Promise<void>((resolve) => {
    const ended = () => {
      left -= 1;
      if (left === 0) resolve();
    };
    worker.on('completed', ended).on('failed', ended);
  });
  await worker.close();
}

const board = (path: string) => admin.call('get', `/admin/queues/api/${path}`);
const NAME = 'shard-1.interactive';

describe('the figures of the queues', () => {
  it('the figures of the queues are there for every shard', async () => {
    const { body } = await admin.call('get', '/admin/v1/queues?order=asc');
    expect(body).toMatchObject({
      object: 'list',
      has_more: false,
      first_id: '0:interactive',
      last_id: '1:interactive',
      workers_wanted: 1,
    });
    expect(body.data[0]).toEqual({
      id: '0:interactive',
      object: 'queue',
      queue: 'interactive',
      shard: 0,
      waiting: 0,
      waiting_by_tenant: [],
      active: 0,
      delayed: 0,
      failed: 0,
      oldest_age_seconds: 0,
      drain_rate_per_second: 0,
      workers_wanted: 0,
      paused: false,
    });
  });

  it('count what waits and how long the oldest has', async () => {
    await add();
    await add();
    admin.clock.advance(30_000);
    const { body } = await admin.call('get', '/admin/v1/queues');
    expect(body.data[0]).toMatchObject({ id: '1:interactive', waiting: 2 });
    expect(body.data[0].oldest_age_seconds).toBeGreaterThanOrEqual(29);
  });

  it('count what failed and how fast the queue drains', async () => {
    for (let index = 0; index < 4; index += 1) await add();
    let calls = 0;
    await run(4, () => {
      calls += 1;
      return calls === 1 ? Promise.reject(new Error('first')) : Promise.resolve();
    });
    // As finish.lua samples it: one request every 40 ms.
    await admin.redis.hset(
      admin.keyspace.shard(1).queueStatistics('interactive'),
      'since:queue',
      admin.clock.now(),
      'gap:queue',
      '40.000',
    );
    const { body } = await admin.call('get', '/admin/v1/queues');
    expect(body.data[0]).toMatchObject({ waiting: 0, failed: 1, drain_rate_per_second: 25 });
  });
});

describe('an operator', () => {
  it('pauses a queue and resumes it, and the audit log says who did', async () => {
    const id = await add();
    const paused = await admin.call('post', '/admin/v1/queues/1:interactive/pause');
    expect(paused.body).toMatchObject({ id: '1:interactive', paused: true, waiting: 1 });
    expect(await admin.queues.queue(0, 'interactive').isPaused()).toBe(false);
    admin.clock.advance(1_000);
    const resumed = await admin.call('post', '/admin/v1/queues/1%3Ainteractive/resume');
    expect(resumed.body).toMatchObject({ paused: false });
    expect(await admin.queues.queue(1, 'interactive').getJobState(id)).toBe('waiting');

    const { body } = await admin.call('get', '/admin/v1/audit_log?limit=2');
    expect(body.data).toMatchObject([
      { actor: 'admin', path: '/admin/v1/queues/1%3Ainteractive/resume', target: '1:interactive', status: 200 },
      { actor: 'admin', path: '/admin/v1/queues/1:interactive/pause', target: '1:interactive', status: 200 },
    ]);
  });

  it.each(['2:interactive', '0:nothing', 'interactive', '%00'])('pauses nothing under the id %s', async (id) => {
    const { status, body } = await admin.call('post', `/admin/v1/queues/${id}/pause`);
    expect([status, body.error.code]).toEqual([404, 'not_found']);
  });
});

describe('the board', () => {
  it('the board loads nothing from elsewhere', async () => {
    const { headers } = await admin.call('get', '/admin/queues');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toMatch(/https?:|unsafe-eval/);
    expect(headers['x-powered-by']).toBeUndefined();
  });

  it('the board serves its page with its own scripts', async () => {
    const page = await admin.call('get', '/admin/queues');
    const script = /src="(static\/js\/main[^"]+)"/.exec(page.text)?.[1];
    expect((await admin.call('get', `/admin/queues/${String(script)}`)).status).toBe(200);
  });

  it('the board lists the queues of every shard apart', async () => {
    const { body } = await board('queues');
    const names = (body.queues as { name: string; readOnlyMode: boolean }[]).map(({ name }) => name);
    expect(names).toEqual(['shard-0.interactive', NAME, 'compliance']);
    expect(body.queues[0]).toMatchObject({
      description: expect.stringMatching(/under PRIORITIZED.*is a sample/),
      supportsGlobalRateLimit: false,
    });
    for (const queue of body.queues) expect(queue).toMatchObject({ readOnlyMode: true, allowRetries: false });
  });

  it('shows ids and nothing else of what a job carries, returns or fails with', async () => {
    const id = await add({ tenantId: TENANT, text: SECRET, nested: { text: SECRET } });
    const failing = await add();
    await run(2, (job) =>
      job.id === failing ? Promise.reject(new Error(`cannot parse ${SECRET}`)) : Promise.resolve({ id, text: SECRET }),
    );
    await admin.queues.queue(1, 'interactive').addJobLog(id, SECRET);
    const answers = await Promise.all([
      board(`queues?activeQueue=${NAME}`),
      board(`queues/${NAME}/${id}`),
      board(`queues/${NAME}/${failing}`),
      board(`queues/${NAME}/${id}/logs`),
      board(`queues/${NAME}/${failing}/flow`),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(answers[1].body.job).toMatchObject({ id, name: 'chat', data: { tenantId: TENANT }, returnValue: { id } });
    expect(answers[2].body.job).toMatchObject({ id: failing, isFailed: true });
    expect(answers.map(({ text }) => text).join()).not.toContain('pupil');
  });

  it.each([
    ['put', `queues/${NAME}/pause`],
    ['put', `queues/pause`],
    ['put', `queues/${NAME}/req_1/promote`],
    ['put', `queues/compliance/retry/failed`],
    ['put', `queues/${NAME}/empty`],
    ['put', `queues/${NAME}/clean/failed`],
    ['put', `queues/${NAME}/obliterate`],
    ['put', `queues/${NAME}/req_1/clean`],
    ['put', `queues/compliance/retry/completed`],
    ['put', `queues/${NAME}/concurrency`],
    ['post', `queues/${NAME}/add`],
    ['patch', `queues/${NAME}/req_1/update-data`],
  ] as const)('the board changes nothing: %s %s', async (method, path) => {
    const response = await admin.call(method, `/admin/queues/api/${path}`, {});
    expect(response.status).toBe(405);
    expect(response.headers['allow']).toBe('GET, HEAD');
    // The page shows an error that is a sentence.
    expect(response.body).toMatchObject({
      code: 'method_not_allowed',
      error: expect.stringMatching(/^The board only/),
    });
  });

  it.each([
    'queues?activeQueue=%25E0%25A4%25A',
    'queues?activeQueue=a&activeQueue=b',
    'job-schedulers?queueName=%25E0',
    `queues?activeQueue=${NAME}&page=-1`,
    `queues?activeQueue=${NAME}&page=x&jobsPerPage=y`,
    `queues?activeQueue=${NAME}&status=nonsense`,
    'queues/nobody/req_1',
    `queues/${NAME}/%00`,
    `queues/${NAME}/%E0%A4%A`,
  ])('the board is not broken by %s', async (path) => {
    expect((await board(path)).status).toBeLessThan(500);
  });
});

it('a failed job of a deletion is not in the way of the next one', async () => {
  const id = newId('del');
  const { queue } = admin.compliance;
  await admin.compliance.add(id, { tenantId: TENANT, jobId: id });
  const worker = new Worker('compliance', () => Promise.reject(new Error('no luck')), {
    connection,
    prefix: queue.opts.prefix ?? '',
  });
  await waitUntil(async () => (await queue.getJobState(id)) === 'failed', 'the failed job');
  await worker.close();

  await admin.compliance.add(id, { tenantId: TENANT, jobId: id });

  expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 1, failed: 0 });
});
