/**
 * The simulated provider as a separate process: `PROVIDER_PORT` (8090), `HOST` (127.0.0.1), and the initial settings of
 * every call as `--defaults 'first_token_ms=200&chunk_ms=20'` (scripts/simulated-provider/settings.ts).
 */
import { parseArgs } from 'node:util';
import { findPortFaults } from '../embedded/ports.ts';
import { readArguments } from '../harness/read-arguments.ts';
import { parseSettingsQuery } from './settings.ts';
import { createSimulatedProvider } from './simulated-provider.ts';

const PORT_DEFAULT = 8090;

const USAGE = `npm run provider:simulated [-- --defaults 'first_token_ms=200&chunk_ms=20']
                settings from which every call starts; HOST and PROVIDER_PORT say where it listens`;

/** Throws an error of one sentence. */
function readDefaults(args: string[]): ReturnType<typeof parseSettingsQuery> {
  const { values } = parseArgs({ args, options: { defaults: { type: 'string', default: '' } } });
  return parseSettingsQuery(values.defaults);
}

async function main(): Promise<void> {
  const read = readArguments(USAGE, process.argv.slice(2), readDefaults);
  if ('exitCode' in read) {
    process.exitCode = read.exitCode;
    return;
  }
  const host = process.env['HOST'] ?? '127.0.0.1';
  const port = readPort(process.env['PROVIDER_PORT']);
  const provider = createSimulatedProvider({ defaults: read.options });
  const [fault] = await findPortFaults([{ setting: 'PROVIDER_PORT', port, host }]);
  if (fault !== undefined) throw new Error(fault.sentence);
  const { url } = await provider.listen(port, host);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      void provider.close();
    });
  }
  console.log(`The simulated provider listens on ${url}/v1 (counts at ${url}/stats).`);
}

function readPort(text: string | undefined): number {
  if (text === undefined || text === '') return PORT_DEFAULT;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new Error('PROVIDER_PORT must be a whole number from 0 to 65535.');
  }
  return port;
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});
