import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { freePort } from '../../../embedded/ports.ts';
import { prepareVenv } from '../../../embedded/python-venv.ts';
import { startServer } from '../../../embedded/server-process.ts';
import { assertReady } from '../../../harness/http.ts';
import { ROOT } from '../../../harness/program.ts';
import { openOwnRedis } from '../../../harness/stores.ts';
import { LITELLM } from '../../../litellm-config.ts';
import type { Missing, StatefulSystem } from '../system.ts';
import { openAiAsk } from './openai-target.ts';
import type { StartOptions } from './parley.ts';
import { stopAll, superviseRestartable, together } from './restartable.ts';

const CACHE_DIR = join(ROOT, '.data', 'cache');
/** Its imports take half a minute on a small machine. */
const READY_TIMEOUT_MS = 5 * 60_000;
const STOP_TIMEOUT_MS = 10_000;

const NEEDS_POSTGRES: Missing = {
  kind: 'not tried',
  why: 'keys with a budget need PostgreSQL through Prisma, whose engine its client downloads from outside the registry',
};

/** Limits for keys without PostgreSQL, as in its documentation of custom authentication. */
const CUSTOM_AUTH = `from litellm.proxy._types import UserAPIKeyAuth

async def user_api_key_auth(request, api_key: str) -> UserAPIKeyAuth:
    name, _, limit = api_key.partition("-rpm-")
    return UserAPIKeyAuth(api_key=api_key, rpm_limit=int(limit) if limit else None)
`;

/** Redis counts for all processes; an empty list of call types prevents answers from a cache. */
function configOf(providerUrl: string, redisPort: number): object {
  const redis = { host: '127.0.0.1', port: redisPort };
  return {
    model_list: [
      {
        model_name: 'sim',
        litellm_params: { model: 'hosted_vllm/sim', api_base: `${providerUrl}/v1`, api_key: 'sk-simulated' },
      },
    ],
    litellm_settings: {
      num_retries: 0,
      cache: true,
      cache_params: { type: 'redis', ...redis, supported_call_types: [] },
    },
    general_settings: { master_key: 'sk-bench', custom_auth: 'custom_auth.user_api_key_auth' },
  };
}

let opened = 0;

/** The Python package's proxy: two processes that share a Redis. */
export async function startLiteLlmSystem(options: StartOptions): Promise<StatefulSystem> {
  const { supervisor, providerUrl, log } = options;
  const { signal } = supervisor;
  const { command, args } = await prepareVenv(LITELLM, { cacheDir: CACHE_DIR, log, signal });
  const dataDir = join(options.dataDir, 'litellm');
  await mkdir(dataDir);
  const redisPort = await freePort();
  const redis = await superviseRestartable(supervisor, 'Redis', () =>
    openOwnRedis({ dataDir, port: redisPort, signal }),
  );
  const config = join(dataDir, 'litellm.json');
  await writeFile(config, JSON.stringify(configOf(providerUrl, redisPort)));
  await writeFile(join(dataDir, 'custom_auth.py'), CUSTOM_AUTH);
  const { PATH, LANG } = process.env;
  const open = (port: number) =>
    startServer({
      name: 'LiteLLM',
      command,
      args: [...args, '--config', config, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'],
      cwd: dataDir,
      // The price list comes from the package, and the user's own settings do not apply.
      env: { PATH, LANG, HOME: dataDir, LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_TELEMETRY: 'False' },
      ready: () => assertReady(`http://127.0.0.1:${port}/health/liveliness`),
      readyTimeoutMs: READY_TIMEOUT_MS,
      stopTimeoutMs: STOP_TIMEOUT_MS,
      signal,
    });
  const ports = [await freePort(), await freePort()];
  const gateways = await Promise.all(
    ports.map((port) => superviseRestartable(supervisor, 'LiteLLM', () => open(port))),
  );
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('There is no LiteLLM.');
  return {
    name: 'litellm',
    version: LITELLM.requirement.replace(/^.*==/, ''),
    urls: ports.map((port) => `http://127.0.0.1:${port}/v1`),
    notes: [
      'two proxies of one process each that share a Redis (AOF everysec); limits of keys by custom authentication',
      'without PostgreSQL: no stored keys, budgets or spend',
    ],
    missing: {
      accounts: NEEDS_POSTGRES,
      resume: { kind: 'not supported', why: 'a stream that is cut is lost' },
      batches: { kind: 'not supported', why: 'hands batches on to the provider and runs none' },
    },
    requestIdHeader: 'x-litellm-call-id',
    bookSeconds: 0,
    openAccount({ requestsPerMinute: limit }) {
      opened += 1;
      const key = `sk-bench-${opened}${limit === undefined ? '' : `-rpm-${limit}`}`;
      return Promise.resolve({ key, id: key });
    },
    ask: ({ key }, ask) => ({
      path: '/chat/completions',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: openAiAsk(ask, 'sim'),
    }),
    components: { gateway, 'every gateway': together(gateways), redis },
    close: () => stopAll([...gateways, redis]),
  };
}
