import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';

/** What one process used while something ran. */
interface ProcessUsage {
  cpuMs: number;
  peakBytes: number;
}

export interface UsageDuring<T> {
  result: T;
  elapsedMs: number;
  byProcess: Record<string, ProcessUsage>;
  /** Of all processes of the machine together. */
  machineCpuMs: number;
}

const SAMPLE_MS = 200;

/** Runs `act` and measures what the processes use meanwhile: CPU time exactly, resident memory by sampling. */
export async function usageDuring<T>(pids: Record<string, number>, act: () => Promise<T>): Promise<UsageDuring<T>> {
  const names = Object.keys(pids);
  const before = await readProcesses(pids);
  const peaks = new Map(names.map((name) => [name, before.get(name)?.peakBytes ?? 0]));
  const sample = async () => {
    const now = await readProcesses(pids);
    for (const name of names) peaks.set(name, Math.max(peaks.get(name) ?? 0, now.get(name)?.peakBytes ?? 0));
    return now;
  };
  const timer = setInterval(() => {
    // The supervisor handles processes that end.
    sample().catch(() => undefined);
  }, SAMPLE_MS);
  const busyBefore = machineBusyMs();
  const startedAt = performance.now();
  try {
    const result = await act();
    const elapsedMs = performance.now() - startedAt;
    const machineCpuMs = machineBusyMs() - busyBefore;
    const after = await sample();
    const byProcess = Object.fromEntries(
      names.map((name) => [
        name,
        { cpuMs: (after.get(name)?.cpuMs ?? 0) - (before.get(name)?.cpuMs ?? 0), peakBytes: peaks.get(name) ?? 0 },
      ]),
    );
    return { result, elapsedMs, byProcess, machineCpuMs };
  } finally {
    clearInterval(timer);
  }
}

/** Linux counts CPU time in hundredths of a second, for every architecture. */
const MS_PER_TICK = 10;

async function readProcesses(pids: Record<string, number>): Promise<Map<string, ProcessUsage>> {
  const usages = Object.entries(pids).map(async ([name, pid]) => {
    const [stat, status] = await Promise.all(
      ['stat', 'status'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8')),
    );
    // The second field is the program's name in brackets and may itself hold spaces and brackets.
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
    const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status ?? '')?.[1] ?? 0);
    return [
      name,
      { cpuMs: (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK, peakBytes: kilobytes * 1024 },
    ] as const;
  });
  return new Map(await Promise.all(usages));
}

function machineBusyMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
}
