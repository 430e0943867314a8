import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { createChatQueues } from '../../../shared/queue/queues.ts';
import type { ChatQueues } from '../../../shared/queue/queues.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { INSTANCE } from '../../../shared/logging/logger.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import { chatOf, errorOf, postChat } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';

const WORDS = 'what the pupil said';
const FAILING = 'sim?fail=status&fail_rate=1';
/** Two completed jobs are kept a second apart. */
const SAMPLE_MS = 1_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('jobs of requests that have ended', () => {
  const service = useService({ env: { COMPLETED_JOBS_KEPT: '2' }, workers: 0 });
  let queues: ChatQueues;
  beforeAll(async () => {
    await service.setProvider({ max_retries: 0 });
    await service.setTargets('mobius', [{ provider: 'simulated', model: FAILING, context_window: 8_000 }]);
    await service.startWorker();
    queues = createChatQueues(service.redis, service.keyspace, () => undefined);
  });
  afterAll(() => queues.close());
  const queue = () => queues.queue(0, 'interactive');
  const jobOf = (id: string) => queue().getJob(id);

  it('stay as failed jobs with the code that the caller was told, and without text', async () => {
    const { key, tenantId } = await service.startTenant();
    const response = await postChat(service.app, key, chatOf(WORDS));
    expect(response.status).toBe(503);
    const id = String(response.headers['x-request-id']);

    const job = await waitFor(async () => {
      const found = await jobOf(id);
      return found?.finishedOn === undefined ? undefined : found;
    }, 'the failed job');

    expect(errorOf(response)['code']).toBe('model_unavailable');
    expect(job.failedReason).toMatch(/^model_unavailable: simulated sim\S* status_5\d\d, attempt \d$/);
    const ended = service.log.lines.filter(
      ({ fields }) => fields.requestId === id && fields.finishReason !== undefined,
    );
    expect(ended).toMatchObject([
      {
        level: 'warn',
        message: 'A request failed.',
        fields: { reason: job.failedReason, endpoint: 'chat', credits: 0 },
      },
    ]);
    const [{ fields }] = ended as [(typeof ended)[number]];
    expect(fields.attempts).toBeGreaterThan(0);
    expect(fields.waitMs).toBeGreaterThanOrEqual(0);
    const loud = service.log.lines.filter((line) => line.fields.requestId === id && line.level !== 'debug');
    expect(loud.map(({ message }) => message)).toEqual(['A request failed.']);
    expect(job.data).toMatchObject({ tenantId, tier: 'mobius', endpoint: 'chat', errorCode: 'model_unavailable' });
    expect(JSON.stringify(await service.redis.hgetall(service.keyspace.shard(0).job('interactive', id)))).not.toContain(
      'pupil',
    );
    expect(service.log.lines.filter(({ message }) => message.startsWith('A job failed'))).toEqual([]);
  });

  it('have a worker with the name that its log lines and the list of processes have', async () => {
    const names = (await queue().getWorkers()).map(({ rawname }) => rawname);
    expect(names).toEqual([expect.stringMatching(new RegExp(`:w:${INSTANCE}$`))]);
  });

  it('are no more than the setting where they were completed, of at most one a second', async () => {
    const { key } = await service.startTenant();
    await pause(SAMPLE_MS);
    const ids: string[] = [];
    for (const waitMs of [0, 0, SAMPLE_MS, SAMPLE_MS]) {
      await pause(waitMs);
      const response = await postChat(service.app, key, chatOf(WORDS, { model: 'oloid' }));
      expect(response.status).toBe(200);
      ids.push(String(response.headers['x-request-id']));
    }

    const kept = await waitFor(async () => {
      const jobs = await queue().getJobs('completed');
      return jobs.some(({ id }) => id === ids[3]) ? jobs : undefined;
    }, 'the last job');

    expect(kept.map(({ id }) => id).sort()).toEqual([ids[2], ids[3]].sort());
    expect(kept[0]?.returnvalue).toMatchObject({ tier: 'oloid', provider: 'simulated', finishReason: 'stop' });
    expect(JSON.stringify(kept)).not.toContain('pupil');
    expect(await service.redis.exists(service.keyspace.shard(0).job('interactive', ids[1] ?? ''))).toBe(0);
  });

  it('are not kept where nothing is to stay of a conversation', async () => {
    const { key } = await service.startTenant({ tenant: { retention_seconds: 0 } });
    await pause(SAMPLE_MS);
    const response = await postChat(service.app, key, chatOf(WORDS, { model: 'oloid' }));
    expect(response.status).toBe(200);
    const id = String(response.headers['x-request-id']);
    await waitUntil(
      async () => !(await service.redis.exists(service.keyspace.shard(0).job('interactive', id))),
      'the job to be gone',
    );
  });
});

it('a kept job is not in the way of its request when that comes into line again', async () => {
  const lab = await openAdmissionLab();
  const queues = createChatQueues(lab.redis, lab.keyspace, () => undefined);
  try {
    const key = await lab.key();
    const requestId = newId('req');
    for (const set of ['failed', 'completed'] as const) {
      const job = lab.keys.job('interactive', requestId);
      await lab.redis.hset(job, {
        name: 'chat',
        data: '{}',
        opts: '{}',
        timestamp: 1,
        finishedOn: 2,
        failedReason: 'x',
      });
      await lab.redis.zadd(`${lab.keys.tag}:interactive:${set}`, 2, requestId);
      await lab.redis.del(lab.keys.record(requestId));

      await key.admit({ requestId, body: '{"requestId":"req"}' });

      expect(await queues.queue(2, 'interactive').getJobCounts('prioritized', set)).toEqual({
        prioritized: 1,
        [set]: 0,
      });
      expect(await lab.redis.hmget(job, 'failedReason', 'finishedOn')).toEqual([null, null]);
    }
  } finally {
    await queues.close();
    await lab.close();
  }
});
