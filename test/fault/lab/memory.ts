import { readFile } from 'node:fs/promises';

const KIB = 1024;

/** Resident memory of a process in bytes, as the kernel counts it. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * KIB;
}
