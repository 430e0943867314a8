import { setTimeout as pause } from 'node:timers/promises';

import { isRefused } from '../checker/requests-by-id.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { RedisGroupKind } from '../lab/victim-groups.ts';
import { expectThat, isWhole, none, range, SLACK_MS } from './findings.ts';

const REQUESTS = 5_000;
const REQUESTS_SMALL = 200;
const CLIENTS = 48;
const TENANTS = 6;
const SHARDS = 4;
const WORKERS = 4;
/** After a refusal, as `Retry-After` asks for at least. */
const RETRY_MS = 500;
const BACK_WITHIN_MS = 15_000;

/** Requests by many clients, a master that dies after a third of them, and a worker after two thirds. */
function scaleOut(name: string, redis: RedisGroupKind, title: string): Experiment {
  return {
    name,
    title,
    isLong: true,
    lab: {
      redis,
      shards: redis === 'cluster' ? SHARDS : 1,
      workers: WORKERS,
      provider: 'echo=1',
      models: { mobius: 'sim?chunks=8&chunk_ms=50' },
    },
    async run(lab, size) {
      const total = size === 'full' ? REQUESTS : REQUESTS_SMALL;
      const tenants = await Promise.all(range(TENANTS, () => lab.openTenant(10_000_000)));
      const startedAt = performance.now();
      let [masterDiedAt, workerDiedAt] = [Infinity, Infinity];
      let accepted = 0;
      const all: SentRequest[] = [];

      async function client(number: number): Promise<void> {
        for (let turn = 0; accepted < total; turn += 1) {
          const tenant = tenants[(number + turn) % TENANTS];
          if (tenant === undefined) return;
          accepted += 1;
          const sent = lab.caller.send({ url: lab.urlOf(number + turn), tenant, words: 16 });
          all.push(sent);
          await sent.ended;
          if (!isRefused(sent)) continue;
          accepted -= 1;
          await pause(RETRY_MS, undefined, { signal: lab.signal });
        }
      }
      const clients = range(CLIENTS, client);
      const limitMs = total * 200;
      await lab.waitFor(() => accepted > total / 3, 'a third of the requests', limitMs);
      await lab.redisGroup.killMaster(0);
      masterDiedAt = performance.now();
      await lab.waitFor(() => accepted > (total * 2) / 3, 'two thirds of the requests', limitMs);
      await lab.redisGroup.restore();
      await lab.workers[0]?.kill();
      workerDiedAt = performance.now();
      await Promise.all(clients);
      const tookMs = performance.now() - startedAt;

      const refused = all.filter(isRefused);
      const late = refused.filter((sent) => sent.last().sentAt > masterDiedAt + BACK_WITHIN_MS + SLACK_MS);
      const early = refused.filter((sent) => sent.last().endedAt < masterDiedAt);
      const broken = all.filter((sent) => !isRefused(sent) && !isWhole(sent));
      const diedWithWorker = (sent: SentRequest) =>
        sent.last().sentAt < workerDiedAt && sent.last().endedAt > workerDiedAt;
      return {
        figures: {
          accepted: all.length - refused.length,
          refused: refused.length,
          'interrupted by the worker': broken.filter(diedWithWorker).length,
          'requests a second': Math.round((all.length - refused.length) / (tookMs / 1000)),
        },
        verdicts: [
          expectThat('all are driven', all.length - refused.length >= total, `${all.length - refused.length}`),
          none('refusals end within 15 s of the master’s death', [...late, ...early]),
          none(
            'refusals are 503',
            refused.filter((sent) => sent.last().status !== 503),
          ),
          none(
            'only the death of a worker interrupts a stream',
            broken.filter((sent) => !diedWithWorker(sent)),
          ),
          none(
            'with the typed error',
            broken.filter((sent) => diedWithWorker(sent) && sent.last().errorCode !== 'model_unavailable'),
          ),
        ],
      };
    },
  };
}

/** S1. */
export const scaleOnCluster = scaleOut(
  'S1',
  'cluster',
  '5,000 streams on 2 ingresses, 4 workers and a Redis Cluster; a master and a worker are killed',
);

/** S2. */
export const scaleOnSentinel = scaleOut('S2', 'sentinel', 'the same under Sentinel');
