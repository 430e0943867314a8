/** `npm start`: everything on one machine (docs/spec.md#demo). `--workers N` runs N workers, `--local` a model. */
import { existsSync } from 'node:fs';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

// The first line comes before the modules that take a while to load.
print('Starting Parley; Ctrl-C stops it.');
const ENV_FILE = '.env';
if (existsSync(ENV_FILE)) {
  try {
    process.loadEnvFile(ENV_FILE);
  } catch (error) {
    process.stderr.write(`${ENV_FILE} cannot be read (${String(error)}): let this user read it, or remove it.\n`);
    process.exit(1);
  }
  print(`start | Settings: those of ${ENV_FILE} where the environment has none`);
}
// Until those modules listen for signals, nothing is running that would have to be stopped.
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const endEarly = () => process.exit(0);
for (const signal of SIGNALS) process.on(signal, endEarly);
const { runAll } = await import('./start/run-all.ts');
const ended = runAll(process.env, process.argv.slice(2), print);
// Only once `runAll` listens itself: a signal in between would be lost.
for (const signal of SIGNALS) process.off(signal, endEarly);
process.exit(await ended);
