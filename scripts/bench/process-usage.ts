import { cpus } from 'node:os';

import pidusage from 'pidusage';

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
  const peaks = new Map(names.map((name) => [name, before[name]?.memory ?? 0]));
  const sample = async () => {
    const now = await readProcesses(pids);
    for (const name of names) peaks.set(name, Math.max(peaks.get(name) ?? 0, now[name]?.memory ?? 0));
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
        { cpuMs: (after[name]?.ctime ?? 0) - (before[name]?.ctime ?? 0), peakBytes: peaks.get(name) ?? 0 },
      ]),
    );
    return { result, elapsedMs, byProcess, machineCpuMs };
  } finally {
    clearInterval(timer);
  }
}

async function readProcesses(pids: Record<string, number>): Promise<Record<string, pidusage.Status>> {
  const byPid = await pidusage(Object.values(pids));
  return Object.fromEntries(
    Object.entries(pids).flatMap(([name, pid]) => {
      const stat = byPid[pid];
      return stat === undefined ? [] : [[name, stat]];
    }),
  );
}

function machineBusyMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
}
