/** What each test file takes of the processor, a line of JSON for each in the file that `TEST_COSTS` names. */
import { appendFileSync, readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second. */
const TICKS_PER_SECOND = 100;
/** Where /proc/PID/stat has utime, stime, cutime and cstime, after the program's name in brackets. */
const FIRST_TIME = 11;

interface Seconds {
  own: number;
  /** Of child processes that have ended. */
  children: number;
}

function secondsOf(pid: string): Seconds {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const times = fields.slice(FIRST_TIME, FIRST_TIME + 4).map((ticks) => Number(ticks) / TICKS_PER_SECOND);
  const [user = 0, system = 0, ofChildren = 0, systemOfChildren = 0] = times;
  return { own: user + system, children: ofChildren + systemOfChildren };
}

/** A store's are those of the whole run: with one jest worker (`-w 1`) they are the file's. */
function secondsNow(): Record<string, number> {
  const stores = JSON.parse(process.env['TEST_STORE_PIDS'] ?? '{}') as Record<string, number>;
  const all = { ...secondsOf('self') } as Record<string, number>;
  for (const [name, pid] of Object.entries(stores)) all[name] = secondsOf(String(pid)).own;
  return all;
}

/** Counts from the call on; what it returns writes the line. */
export function countCosts(file: string): () => void {
  const costsFile = process.env['TEST_COSTS'] ?? '';
  if (costsFile === '') return () => undefined;
  const before = secondsNow();
  return () => {
    const spent = Object.entries(secondsNow()).map(([name, now]) => [name, +(now - (before[name] ?? 0)).toFixed(2)]);
    appendFileSync(costsFile, `${JSON.stringify({ file, ...Object.fromEntries(spent) })}\n`);
  };
}
