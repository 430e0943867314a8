import { join } from 'node:path';

import { freePort } from '../embedded/ports.ts';
import { callJson } from './http.ts';
import type { Supervisor } from './supervisor.ts';
import { superviseProgram } from './program.ts';

/** Starts the simulated provider, on a free port unless one is given; `url` has no version segment. */
export async function superviseProvider(
  supervisor: Supervisor,
  dataDir: string,
  wantedPort?: number,
): Promise<{ url: string; pid: number }> {
  const port = wantedPort ?? (await freePort());
  const url = `http://127.0.0.1:${port}`;
  const pid = await superviseProgram(supervisor, {
    name: 'The simulated provider',
    file: 'scripts/simulated-provider/main.ts',
    env: { PROVIDER_PORT: String(port), NODE_ENV: 'production' },
    log: { file: join(dataDir, 'provider.log') },
    ready: () => callJson('GET', `${url}/health/live`),
  });
  return { url, pid };
}
