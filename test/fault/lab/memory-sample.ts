import { readdir } from 'node:fs/promises';

import { expectThat } from '../experiments/findings.ts';
import type { Verdict } from '../checker/verdict.ts';
import type { Lab } from './lab.ts';

/** What processes and Redis need at one moment. */
export interface MemorySample {
  /** Live bytes of each process, after a garbage collection. */
  processes: Record<string, number>;
  /** Open files and sockets of each process. */
  handles: Record<string, number>;
  redisBytes: number;
  channels: number;
}

export interface GrowthLimits {
  processBytes: number;
  redisBytes: number;
  /** Absent: not judged, for loads whose connections come and go. */
  handles?: number;
}

/** More than the retention of any experiment here. */
const FORGOTTEN_MS = 120_000;
const MEGABYTE = 1024 * 1024;
const megabytes = (bytes: number) => (bytes / MEGABYTE).toFixed(1);

export async function sampleMemory({ ingresses, workers, inspector, liveBytes }: Lab): Promise<MemorySample> {
  const processes: Record<string, number> = {};
  const handles: Record<string, number> = {};
  for (const victim of [...ingresses, ...workers]) {
    processes[victim.name] = await liveBytes(victim);
    handles[victim.name] = (await readdir(`/proc/${victim.pid}/fd`)).length;
  }
  const { client } = inspector;
  const memory = await client.info('memory');
  // Answers a list of names.
  const channels = (await client.call('PUBSUB', 'CHANNELS', '*')) as string[];
  return {
    processes,
    handles,
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

/** Records and streams are gone when the retention is over: what memory is left then is not theirs. */
export async function untilForgotten({ inspector: { client, keys }, waitFor }: Lab): Promise<void> {
  const records = `${keys.record('').replace(/[[\]?*]/g, '\\$&')}*`;
  await waitFor(async () => (await countKeys(client, records)) === 0, 'the end of the retention', FORGOTTEN_MS);
}

function growthOf(before: Record<string, number>, after: Record<string, number>): [string, number][] {
  return Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]);
}

export function growthFigures(before: MemorySample, after: MemorySample): Record<string, string> {
  const processes = growthOf(before.processes, after.processes);
  return {
    ...Object.fromEntries(processes.map(([name, bytes]) => [`${name} grew by (MB)`, megabytes(bytes)])),
    'Redis grew by (MB)': megabytes(after.redisBytes - before.redisBytes),
    channels: `${before.channels} and ${after.channels}`,
    handles: growthOf(before.handles, after.handles)
      .map(([name, count]) => `${name} ${count >= 0 ? '+' : ''}${count}`)
      .join(', '),
  };
}

export function growthVerdicts(before: MemorySample, after: MemorySample, limits: GrowthLimits): Verdict[] {
  const { processBytes, redisBytes, handles = Infinity } = limits;
  const grown = growthOf(before.processes, after.processes).filter(([, bytes]) => bytes > processBytes);
  const opened = growthOf(before.handles, after.handles).filter(([, count]) => count > handles);
  const redisGrowth = after.redisBytes - before.redisBytes;
  return [
    {
      name: 'memory of every process is flat',
      faults: grown.map(([name, bytes]) => `${name}: ${megabytes(bytes)} MB`),
    },
    { name: 'handles of every process are flat', faults: opened.map(([name, count]) => `${name}: ${count} more`) },
    expectThat('Redis memory is flat', redisGrowth < redisBytes, `${megabytes(redisGrowth)} MB`),
    expectThat(
      'channels are as many as before',
      after.channels === before.channels,
      `${before.channels}, ${after.channels}`,
    ),
  ];
}
