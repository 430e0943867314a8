import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { createChance, expectThat, isWhole, none, range } from './findings.ts';

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
const EXPIRE_MS = 60_000;

interface Sample {
  processes: Record<string, number>;
  redisBytes: number;
  channels: number;
}

async function sample({ ingresses, workers, inspector, liveBytes }: Lab): Promise<Sample> {
  const processes: Record<string, number> = {};
  for (const victim of [...ingresses, ...workers]) processes[victim.name] = await liveBytes(victim);
  const { client } = inspector;
  const memory = await client.info('memory');
  // Answers a list of names.
  const channels = (await client.call('PUBSUB', 'CHANNELS', '*')) as string[];
  return {
    processes,
    redisBytes: Number(/^used_memory:(\d+)/m.exec(memory)?.[1] ?? 0),
    channels: channels.length,
  };
}

async function countKeys(client: Lab['inspector']['client'], pattern: string): Promise<number> {
  let [cursor, count] = ['0', 0];
  do {
    const [next, names] = await client.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000);
    cursor = next;
    count += names.length;
  } while (cursor !== '0');
  return count;
}

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
        const leaves = chance() < 0.5;
        const call = { url: lab.urlOf(index), tenant, words: 16 };
        await lab.caller.send(leaves ? { ...call, leaveAt: 'first-text' } : call).ended;
      }
    };
    const run = async (until: number): Promise<Sample> => {
      await Promise.all(range(CLIENTS, () => runClient(until)));
      // Records and streams are gone a few seconds after their end.
      const { client, keys } = lab.inspector;
      const records = `${keys.record('').replace(/[[\]?*]/g, '\\$&')}*`;
      await lab.waitFor(async () => (await countKeys(client, records)) === 0, 'the end of the retention', EXPIRE_MS);
      return sample(lab);
    };
    const warm = await run(STREAMS * WARM);
    const end = await run(STREAMS);

    const growth = Object.fromEntries(
      Object.entries(end.processes).map(([name, bytes]) => [name, bytes - (warm.processes[name] ?? 0)]),
    );
    const grown = Object.entries(growth).filter(([, bytes]) => bytes > PROCESS_GROWTH_MAX);
    const redisGrowth = end.redisBytes - warm.redisBytes;
    const megabytes = (bytes: number) => (bytes / MEGABYTE).toFixed(1);
    return {
      figures: {
        ...Object.fromEntries(
          Object.entries(growth).map(([name, bytes]) => [`${name} grew by (MB)`, megabytes(bytes)]),
        ),
        'Redis grew by (MB)': megabytes(redisGrowth),
        channels: `${warm.channels} and ${end.channels}`,
      },
      verdicts: [
        {
          name: 'memory of every process is flat',
          faults: grown.map(([name, bytes]) => `${name}: ${megabytes(bytes)} MB`),
        },
        expectThat('Redis memory is flat', redisGrowth < REDIS_GROWTH_MAX, `${megabytes(redisGrowth)} MB`),
        expectThat(
          'channels are as many as before',
          end.channels === warm.channels,
          `${warm.channels}, ${end.channels}`,
        ),
        none(
          'who stays has the whole answer',
          lab.caller.requests.filter((sent) => sent.last().end !== 'left' && !isWhole(sent)),
        ),
      ],
    };
  },
};
