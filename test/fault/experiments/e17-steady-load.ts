import { setTimeout as pause } from 'node:timers/promises';

import { createBatchClient } from '../client/batch-client.ts';
import { createChance } from '../../support/chance.ts';
import type { Chance } from '../../support/chance.ts';
import type { Call, Tenant } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { growthFigures, growthVerdicts, sampleMemory, untilForgotten } from '../lab/memory-sample.ts';
import type { MemorySample } from '../lab/memory-sample.ts';
import { expectThat, isWhole, none, range } from './findings.ts';

const CLIENTS = 8;
/** Between a client's requests; with their own time, about ten requests a second come together. */
const PAUSE_MS = 600;
const BATCH_LINES = 50;
const BATCH_EVERY_MS = 30_000;
const RETENTION_SECONDS = 30;
/** Of the time; memory until then is that of a process that warms up. */
const WARM = 0.5;
const MEGABYTE = 1024 * 1024;
/** After a garbage collection. Half an hour has about 9,000 requests in its second half: 1 KB each. */
const PROCESS_GROWTH_MAX = 9 * MEGABYTE;
/** The sliding windows hold a minute of requests. */
const REDIS_GROWTH_MAX = 4 * MEGABYTE;
/** Keep-alive connections come and go. */
const HANDLES_MAX = 25;

/** What callers do, in turn: streams, complete answers, conversations, safe retries, and some who leave. */
function callOf(lab: Lab, tenant: Tenant, index: number, chance: Chance): Call {
  const call = { url: lab.urlOf(index), tenant, words: 12 };
  switch (index % 6) {
    case 0:
      return { ...call, stream: false };
    case 1:
      // The answer depends on what was said before.
      return { ...call, isEchoed: false, body: { entity_id: `entity-${index % 30}` } };
    case 2:
      return { ...call, idempotencyKey: `once-${index}` };
    case 3:
      return chance.is(0.5) ? { ...call, leaveAt: 'first-text' } : call;
    default:
      return call;
  }
}

/** E17: `npm run test:fault -- E17 --minutes 30`. */
export const steadyLoad: Experiment = {
  name: 'E17',
  title: 'half an hour of steady load of all kinds',
  isLong: true,
  lab: {
    provider: 'echo=1',
    models: { mobius: 'sim?first_token_ms=50&chunks=4&chunk_ms=20' },
    settings: { STREAM_RETENTION_SECONDS: String(RETENTION_SECONDS), DISCONNECT_GRACE_SECONDS: '2' },
    keepsRecords: false,
  },
  async run(lab, _size, { minutes }) {
    const tenant = await lab.openTenant(100_000_000);
    const chance = createChance(17);
    const batches = createBatchClient({
      url: () => `${lab.urlOf(0)}/platform/v1`,
      key: tenant.key,
      signal: lab.signal,
    });
    const statuses: string[] = [];
    let begun = 0;

    const runClient = async (until: number) => {
      while (performance.now() < until) {
        begun += 1;
        await lab.caller.send(callOf(lab, tenant, begun, chance)).ended;
        await pause(PAUSE_MS, undefined, { signal: lab.signal });
      }
    };
    const runBatches = async (until: number) => {
      while (performance.now() < until) {
        const { id } = await batches.submit(BATCH_LINES);
        const { status } = await batches.until(id, (state) => state.status !== 'in_progress');
        statuses.push(status);
        await pause(BATCH_EVERY_MS, undefined, { signal: lab.signal });
      }
    };
    const runFor = async (ms: number): Promise<MemorySample> => {
      const until = performance.now() + ms;
      await Promise.all([...range(CLIENTS, () => runClient(until)), runBatches(until)]);
      await untilForgotten(lab);
      return sampleMemory(lab);
    };
    const allMs = minutes * 60_000;
    const warm = await runFor(allMs * WARM);
    const end = await runFor(allMs * (1 - WARM));

    return {
      figures: { ...growthFigures(warm, end), batches: statuses.length },
      verdicts: [
        ...growthVerdicts(warm, end, {
          processBytes: PROCESS_GROWTH_MAX,
          redisBytes: REDIS_GROWTH_MAX,
          handles: HANDLES_MAX,
        }),
        none(
          'who stays has the whole answer',
          lab.caller.requests.filter((sent) => sent.last().end !== 'left' && !isWhole(sent)),
        ),
        expectThat(
          'every batch completes',
          statuses.length > 0 && statuses.every((status) => status === 'completed'),
          [...new Set(statuses)].join(', '),
        ),
      ],
    };
  },
};
