/**
 * `npm run test:providers`: tests the adapters of workers/providers against LiteLLM's proxy, and the service with a model
 * on llama.cpp's server: servers written by others. The first run installs them into the cache of DATA_DIR, which takes
 * minutes. Arguments go to jest; a server is left out where they name tests of the other only.
 */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';

import { prepareLocalModel } from './embedded/local-model.ts';
import { freePort } from './embedded/ports.ts';
import { prepareVenv } from './embedded/python-venv.ts';
import { startServer } from './embedded/server-process.ts';
import { ROOT } from './harness/program.ts';
import { runSupervised } from './harness/run-supervised.ts';
import type { SupervisedTask } from './harness/run-supervised.ts';
import { assertReady } from './harness/http.ts';

const JEST = join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js');
const CACHE_DIR = join(resolve(ROOT, process.env['DATA_DIR'] ?? '.data'), 'cache');
/** Its imports take half a minute on a small machine. */
const READY_TIMEOUT_MS = 5 * 60_000;
const STOP_TIMEOUT_MS = 10_000;
const MASTER_KEY = 'sk-parley-provider-tests';

const LITELLM = {
  requirement: 'litellm[proxy]==1.106.2',
  name: 'LiteLLM',
  program: 'litellm',
  subject: 'LiteLLM',
  folder: 'litellm-venv',
  takes: '2 minutes',
};

/** The answers of the models, by the names that the tests use. */
const MODELS = {
  /** LiteLLM's own answer. */
  mock: { mock_response: 'Rivers run to the sea.' },
  limited: { mock_response: 'litellm.RateLimitError' },
  broken: { mock_response: 'litellm.InternalServerError' },
} as const;

const print = (line: string) => {
  console.log(line);
};
/** The servers by the names of their tests, each with the variables by which its tests find it. */
const SERVERS = { litellm: startLiteLlm, 'llama-server': startLlama };
process.exitCode = await runSupervised('providers', print, async (task) => {
  const named = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
  const settings: Record<string, string> = {};
  for (const [name, start] of Object.entries(SERVERS))
    if (named.length === 0 || named.some((argument) => argument.includes(name)))
      Object.assign(settings, await start(task));
  return runJest(settings, task);
});

async function startLiteLlm({ supervisor, dataDir }: SupervisedTask): Promise<Record<string, string>> {
  const { signal } = supervisor;
  const { command, args } = await prepareVenv(LITELLM, { cacheDir: CACHE_DIR, log: print, signal });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const configFile = join(dataDir, 'litellm.json');
  await writeFile(configFile, JSON.stringify(liteLlmConfig(url, MASTER_KEY)));
  const { PATH, LANG } = process.env;
  const server = await startServer({
    name: 'LiteLLM',
    command,
    args: [...args, '--config', configFile, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'],
    cwd: dataDir,
    // The price list comes from the package and need not be fetched, and the user's other settings do not apply.
    env: { PATH, LANG, HOME: dataDir, LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_TELEMETRY: 'False' },
    ready: () => assertReady(`${url}/health/liveliness`),
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    signal,
  });
  supervisor.adopt('LiteLLM', server);
  print(`LiteLLM: ${LITELLM.requirement} answers at ${url} with ${Object.keys(MODELS).length} models`);
  return { TEST_LITELLM_URL: url, TEST_LITELLM_KEY: MASTER_KEY };
}

async function startLlama({ supervisor }: SupervisedTask): Promise<Record<string, string>> {
  const port = await freePort();
  const options = { cacheDir: CACHE_DIR, log: print, signal: supervisor.signal };
  const { url, ...server } = await prepareLocalModel(port, options);
  await supervisor.start('llama-server', server);
  print(`llama.cpp's server answers at ${url}`);
  return { TEST_LLAMA_URL: new URL(url).origin };
}

function runJest(settings: Record<string, string>, { supervisor }: SupervisedTask): Promise<number> {
  const jest = spawn(process.execPath, [JEST, '--config', 'jest.providers.config.js', ...process.argv.slice(2)], {
    cwd: ROOT,
    stdio: 'inherit',
    env: {
      ...process.env,
      NODE_OPTIONS: '--experimental-vm-modules --disable-warning=ExperimentalWarning',
      ...settings,
    },
  });
  supervisor.signal.addEventListener('abort', () => jest.kill('SIGTERM'), { once: true });
  return new Promise((done, reject) => {
    jest.once('error', reject);
    jest.once('exit', (code, signal) => {
      done(code ?? 128 + constants.signals[signal ?? 'SIGTERM']);
    });
  });
}

/**
 * LiteLLM's configuration. Each model `x` has a `via-x`, for which LiteLLM calls itself over HTTP: a mock of its
 * Messages API does not stream, but a server behind it is translated event by event.
 */
function liteLlmConfig(url: string, masterKey: string): object {
  const models = Object.entries(MODELS).flatMap(([name, params]) => [
    { model_name: name, litellm_params: { model: 'openai/gpt-4o-mini', api_key: 'none', ...params } },
    {
      model_name: `via-${name}`,
      litellm_params: { model: `hosted_vllm/${name}`, api_base: `${url}/v1`, api_key: masterKey },
    },
  ]);
  return { model_list: models, litellm_settings: { num_retries: 0 }, general_settings: { master_key: masterKey } };
}
