import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { createBatchClient } from '../../../scripts/harness/batch-client.ts';
import { startResumingClients } from '../client/resuming-clients.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, isWhole, none, range, SLACK_MS } from './findings.ts';

const CLIENTS = 16;
const SHARDS = 4;
const LINES = { full: 600, small: 100 } as const;
const STEP_MS = 120_000;
const BATCH_MS = 300_000;
/** docs/spec/contract.md section 1: with Redis away a caller gets 503 within 2 s. */
const REFUSED_WITHIN_MS = 2_000;
/** Fewer than a master has: one without slots has no vote, and two others elect nobody. */
const SLOTS = 500;

const run = promisify(execFile);

/** Slots of one master go to another one, as an operator moves them. */
async function reshard(lab: Lab): Promise<void> {
  const [first = ''] = new URL(lab.redisGroup.url.replace('redis+cluster', 'http').replace(/,.*/, '')).host.split(',');
  const [host = '', port = ''] = first.split(':');
  const { stdout } = await run('redis-cli', ['-h', host, '-p', port, 'cluster', 'nodes']);
  const masters = stdout
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , flags = '', ...rest]) => flags.includes('master') && !flags.includes('fail') && rest.length > 5);
  const [from, to] = masters.map(([id = '']) => id);
  await run(
    'redis-cli',
    [
      '--cluster',
      'reshard',
      first,
      '--cluster-from',
      from ?? '',
      '--cluster-to',
      to ?? '',
      '--cluster-slots',
      String(SLOTS),
      '--cluster-yes',
      '--cluster-pipeline',
      '5',
    ],
    { signal: lab.signal, maxBuffer: 64 * 1024 * 1024 },
  );
}

/** E19e. */
export const clusterRearranged: Experiment = {
  name: 'E19e',
  title:
    'a Redis Cluster is resharded, failed over, loses a master and gets it back while ingresses and workers restart',
  lab: {
    redis: 'cluster',
    shards: SHARDS,
    provider: 'echo=1',
    models: { mobius: 'sim?chunks=40&chunk_ms=100', oloid: 'sim?chunks=5' },
    settings: { SHUTDOWN_GRACE_SECONDS: '2' },
  },
  async run(lab, size) {
    const tenants = await Promise.all(range(SHARDS * 2, () => lab.openTenant(10_000_000)));
    const per = Math.ceil(CLIENTS / tenants.length);
    const groups = tenants.map((tenant) => startResumingClients(lab, per, { tenant, words: 80 }));
    const finished = () => groups.flatMap((group) => group.finished);
    await lab.waitFor(() => finished().length >= CLIENTS, 'the first answers', STEP_MS);

    const [batchTenant] = tenants;
    const batches = createBatchClient({
      url: () => `${lab.urlOf(0)}/platform/v1`,
      key: batchTenant?.key ?? '',
      signal: lab.signal,
    });
    const { id } = await batches.submit(LINES[size]);
    const find = () => batches.find(id).catch(() => undefined);

    const marks: Record<string, string> = {};
    const startedAt = performance.now();
    const goOn = async (what: string) => {
      const from = finished().filter(isWhole).length;
      const at = performance.now();
      await lab.waitFor(() => finished().filter(isWhole).length >= from + CLIENTS, `answers after: ${what}`, STEP_MS);
      marks[what] = `${((performance.now() - at) / 1000).toFixed(1)} s`;
    };

    await reshard(lab);
    await goOn('reshard');
    for (const shard of range(SHARDS, (index) => index))
      await lab.redisGroup.failOver(shard).catch((error: unknown) => {
        marks[`failOver ${shard}`] = String(error).slice(0, 80);
      });
    await goOn('fail-over');
    const [oldIngress] = lab.ingresses;
    const fresh = await lab.startIngress();
    if (oldIngress !== undefined) {
      for (const group of groups) group.replace(oldIngress, fresh);
      await oldIngress.stop();
    }
    await Promise.all([
      (async () => {
        for (const shard of range(SHARDS, (index) => index)) await lab.redisGroup.moveShard(shard);
      })(),
      (async () => {
        const [oldWorker] = lab.workers;
        await lab.startWorker();
        await oldWorker?.stop();
      })(),
    ]);
    await goOn('slots moved, ingress and worker restarted');
    await lab.redisGroup.killMaster(0);
    await goOn('master killed');
    const [killed] = lab.workers;
    await lab.startWorker();
    await killed?.kill();
    await lab.redisGroup.restore();
    await goOn('worker killed, master back');
    const isCompleted = async () => (await find())?.status === 'completed';
    await lab.waitFor(isCompleted, 'the batch to complete', BATCH_MS);
    await Promise.all(groups.map((group) => group.end()));
    const seconds = (performance.now() - startedAt) / 1000;
    const { request_counts: counts } = await batches.find(id);

    const all = finished();
    const refusals = all.flatMap(({ readings }) => readings).filter(({ status }) => status >= 400);
    const slow = refusals.filter(({ sentAt, headAt }) => headAt - sentAt > REFUSED_WITHIN_MS + SLACK_MS);
    const strange = refusals.filter(
      ({ status, retryAfterSeconds }) => status !== 503 || retryAfterSeconds === undefined,
    );
    return {
      figures: {
        seconds: Math.round(seconds),
        answers: all.length,
        resumed: all.filter(({ readings }) => readings.length > 1).length,
        refusals: refusals.length,
        'slowest refusal (ms)': Math.round(Math.max(0, ...refusals.map(({ sentAt, headAt }) => headAt - sentAt))),
        ...marks,
      },
      verdicts: [
        none(
          'no request is lost',
          all.filter((sent) => !isWhole(sent)),
        ),
        expectThat('refusals come within 2 s', slow.length === 0, `${slow.length} were slower`),
        expectThat(
          'refusals are 503 with Retry-After',
          strange.length === 0,
          strange.map(({ status, errorCode }) => `${status} ${errorCode ?? ''}`).join(', '),
        ),
        expectThat('every line is completed', counts.completed === LINES[size], JSON.stringify(counts)),
      ],
      judge: ({ logs }) => [
        {
          name: 'no command meets keys of two slots',
          faults: logs.filter(({ text }) => /CROSSSLOT/.test(text)).map(({ name }) => name),
        },
      ],
    };
  },
};
