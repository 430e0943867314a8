import { createChance } from '../../support/chance.ts';
import type { Experiment } from '../experiment.ts';
import { growthFigures, growthVerdicts, sampleMemory, untilForgotten } from '../lab/memory-sample.ts';
import type { MemorySample } from '../lab/memory-sample.ts';
import { isWhole, none, range } from './findings.ts';

const STREAMS = 10_000;
const CLIENTS = 48;
const MEGABYTE = 1024 * 1024;
/** After a garbage collection. A leak of 4 KB a stream would be twice as much: each process has a half of 5,000. */
const PROCESS_GROWTH_MAX = 5 * MEGABYTE;
/** The sliding windows hold a minute of requests. */
const REDIS_GROWTH_MAX = 8 * MEGABYTE;
const RETENTION_SECONDS = 5;
/** Of the streams; memory until then is that of a process that warms up. */
const WARM = 0.5;

/** R3. What a stream leaves behind would show after 5,000 of them. */
export const tenThousandStreams: Experiment = {
  name: 'R3',
  title: 'memory and channels after 10,000 streams, half of whose clients leave early',
  lab: {
    provider: 'echo=1',
    models: { mobius: 'sim?chunks=4&chunk_ms=10' },
    settings: { STREAM_RETENTION_SECONDS: String(RETENTION_SECONDS), DISCONNECT_GRACE_SECONDS: '1' },
    keepsRecords: false,
  },
  async run(lab) {
    const tenant = await lab.openTenant(10_000_000);
    const chance = createChance(7);
    let begun = 0;
    const runClient = async (until: number) => {
      while (begun < until) {
        const index = (begun += 1);
        const leaves = chance.is(0.5);
        const call = { url: lab.urlOf(index), tenant, words: 16 };
        await lab.caller.send(leaves ? { ...call, leaveAt: 'first-text' } : call).ended;
      }
    };
    const run = async (until: number): Promise<MemorySample> => {
      await Promise.all(range(CLIENTS, () => runClient(until)));
      await untilForgotten(lab);
      return sampleMemory(lab);
    };
    const warm = await run(STREAMS * WARM);
    const end = await run(STREAMS);

    return {
      figures: growthFigures(warm, end),
      verdicts: [
        ...growthVerdicts(warm, end, { processBytes: PROCESS_GROWTH_MAX, redisBytes: REDIS_GROWTH_MAX }),
        none(
          'who stays has the whole answer',
          lab.caller.requests.filter((sent) => sent.last().end !== 'left' && !isWhole(sent)),
        ),
      ],
    };
  },
};
