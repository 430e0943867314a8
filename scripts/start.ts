/** `npm start`: everything on one machine (contract.md section 1). `--workers N` runs N workers. */
import { existsSync } from 'node:fs';

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

// The first line comes before the modules that take their time to load.
print('Starting Parley; Ctrl-C stops it.');
const ENV_FILE = '.env';
if (existsSync(ENV_FILE)) {
  process.loadEnvFile(ENV_FILE);
  print(`start | Settings: those of ${ENV_FILE} where the environment has none`);
}
const { runAll } = await import('./start/run-all.ts');
process.exit(await runAll(process.env, process.argv.slice(2), print));
