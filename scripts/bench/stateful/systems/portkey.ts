import { join } from 'node:path';

import { freePort } from '../../../embedded/ports.ts';
import { callJson } from '../../../harness/http.ts';
import { startProgram } from '../../../harness/program.ts';
import { PORTKEY, installRival } from '../../rivals/install-rival.ts';
import type { Account, Missing, StatefulSystem } from '../system.ts';
import { openAiAsk } from './openai-target.ts';
import type { StartOptions } from './parley.ts';
import { stopAll, superviseRestartable, together } from './restartable.ts';

const HOSTED: Missing = { kind: 'not supported', why: 'the open gateway keeps no keys; the hosted product does' };

/** The open-source gateway: one process without a store. */
export async function startPortkeySystem(options: StartOptions): Promise<StatefulSystem> {
  const { supervisor, dataDir, providerUrl, log } = options;
  const folder = await installRival(PORTKEY, log);
  const ports = [await freePort(), await freePort()];
  const open = (port: number) =>
    startProgram({
      name: 'Portkey',
      file: join(folder, 'build', 'start-server.js'),
      args: [`--port=${port}`, '--headless'],
      env: { NODE_ENV: 'production' },
      log: { file: join(dataDir, `portkey-${port}.log`) },
      ready: () => callJson('GET', `http://127.0.0.1:${port}`),
      signal: supervisor.signal,
    });
  const gateways = await Promise.all(
    ports.map((port) => superviseRestartable(supervisor, 'Portkey', () => open(port))),
  );
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('There is no Portkey.');
  return {
    name: 'portkey',
    version: PORTKEY.version,
    urls: ports.map((port) => `http://127.0.0.1:${port}/v1`),
    notes: ['two processes of the open gateway, no store; settings as by default'],
    missing: {
      requestLimits: HOSTED,
      accounts: HOSTED,
      resume: { kind: 'not supported', why: 'a stream that is cut is lost' },
      batches: { kind: 'not supported', why: 'hands batches on to the provider and runs none' },
    },
    requestIdHeader: 'x-portkey-trace-id',
    bookSeconds: 0,
    openAccount: (): Promise<Account> => Promise.resolve({ key: '', id: '' }),
    ask: (_account, ask) => ({
      path: '/chat/completions',
      headers: {
        'Content-Type': 'application/json',
        Authorization: 'Bearer sk-simulated',
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${providerUrl}/v1`,
      },
      body: openAiAsk(ask, 'sim'),
    }),
    components: { gateway, 'every gateway': together(gateways) },
    close: () => stopAll(gateways),
  };
}
