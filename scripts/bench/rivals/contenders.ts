import { join } from 'node:path';

import { freePort } from '../../embedded/ports.ts';
import { callJson } from '../../harness/http.ts';
import { superviseProgram } from '../../harness/program.ts';
import type { LoadSpec } from '../load-spec.ts';
import { SENTENCE } from '../sample-text.ts';
import { startFloor, startParley } from '../systems.ts';
import type { Parley, System, SystemOptions } from '../systems.ts';
import { PORTKEY, installRival } from './install-rival.ts';
import { TWO_WORKERS, historyOf, promptOf } from './rival-cases.ts';
import type { RivalCase } from './rival-cases.ts';

/** What a load on one contender needs besides its duration. */
export type Ask = Pick<LoadSpec, 'url' | 'headers' | 'bodies' | 'resume' | 'keys'> & {
  /** How many requests were answered to prepare the load. */
  prepared?: number;
};

/** One of the systems that are compared. */
export interface Contender {
  name: string;
  /** Empty if the processes are not ours to measure. */
  pids: Record<string, number>;
  /** How the contender is called in this case. May have to prepare something first. */
  prepare(benchCase: RivalCase, answer: string): Promise<Ask>;
  /** Resolves when no work for answered requests is left. */
  settled(): Promise<void>;
  /** Only for Parley. */
  parley?: Parley;
}

/** A server that speaks OpenAI's protocol. */
export interface Target {
  name: string;
  /** Ends with its version segment. */
  url: string;
  headers?: Record<string, string>;
  model?: string;
}

const PROVIDER_MODEL = 'sim?chunks=40';
const NOTHING_LEFT = (): Promise<void> => Promise.resolve();

/** A contender without a memory gets the whole conversation in each body. */
function openAiContender({ name, url, headers = {}, model }: Target, pids: Contender['pids'] = {}): Contender {
  return {
    name,
    pids,
    settled: NOTHING_LEFT,
    prepare: (benchCase, answer) => {
      const messages = [...historyOf(benchCase.history ?? 0, answer), ...promptOf(benchCase)];
      const body = { model: model ?? PROVIDER_MODEL, stream: benchCase.mode === 'stream', messages };
      return Promise.resolve({
        url: `${url}/chat/completions`,
        headers: { 'Content-Type': 'application/json', ...headers },
        bodies: [JSON.stringify(body)],
      });
    },
  };
}

async function startPassThrough({ supervisor, dataDir, providerUrl }: SystemOptions): Promise<Contender> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const pid = await superviseProgram(supervisor, {
    name: 'The pass-through',
    file: 'scripts/bench/rivals/pass-through.ts',
    env: { NODE_ENV: 'production', PORT: String(port), PROVIDER_URL: providerUrl },
    log: { file: join(dataDir, 'pass-through.log') },
    ready: () => callJson('GET', url),
  });
  return openAiContender({ name: 'pass-through', url: `${url}/v1` }, { process: pid });
}

async function startPortkey({ supervisor, dataDir, providerUrl, log }: SystemOptions): Promise<Contender> {
  const folder = await installRival(PORTKEY, log);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const pid = await superviseProgram(supervisor, {
    name: 'Portkey',
    file: join(folder, 'build', 'start-server.js'),
    args: [`--port=${port}`, '--headless'],
    env: { NODE_ENV: 'production' },
    log: { file: join(dataDir, 'portkey.log') },
    ready: () => callJson('GET', url),
  });
  const headers = {
    Authorization: 'Bearer sk-simulated',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${providerUrl}/v1`,
  };
  return openAiContender({ name: 'portkey', url: `${url}/v1`, headers }, { process: pid });
}

/** Parley and the floor, called at Parley's own two endpoints. */
function contenderOf(name: string, system: System, parley?: Parley): Contender {
  const { url, headers, pids, settled } = system;
  return {
    name,
    pids,
    settled,
    ...(parley === undefined ? {} : { parley }),
    async prepare(benchCase) {
      const messages = promptOf(benchCase);
      const path = benchCase.mode === 'stream' ? '/chat/stream' : '/chat';
      const entities = benchCase.history === undefined ? [] : await fillMemory(system, benchCase);
      const bodies = entities.map((entity) => JSON.stringify({ model: 'mobius', messages, entity_id: entity }));
      return {
        url: url + path,
        headers,
        bodies: bodies.length > 0 ? bodies : [JSON.stringify({ model: 'mobius', messages })],
        prepared: (entities.length * (benchCase.history ?? 0)) / 2,
        ...(benchCase.isResumed === true
          ? { resume: { url: `${url}/chat/stream`, afterEvents: 5 }, keys: await makeKeys(parley) }
          : {}),
      };
    },
  };
}

/** Enough for 200 resumes per second. */
const RESUMING_KEYS = 20;

async function makeKeys(parley: Parley | undefined): Promise<string[]> {
  if (parley === undefined) return [];
  const make = async (_: unknown, index: number) => {
    const body = { name: `Resumes ${index}`, mode: 'live', scopes: ['*'] };
    const key = await parley.admin.send('POST', `/admin/v1/tenants/${parley.tenantId}/keys`, body);
    return String(key['value']);
  };
  return Promise.all(Array.from({ length: RESUMING_KEYS }).map(make));
}

let filled = 0;

/** Creates an entity with a full memory for each client. Returns their names. */
async function fillMemory(system: System, { history = 0, clients }: RivalCase): Promise<string[]> {
  filled += 1;
  const entities = Array.from({ length: clients }, (_, index) => `bench-${filled}-${index}`);
  const fill = async (entity: string) => {
    const body = { model: 'mobius', messages: [{ role: 'user', content: SENTENCE }], entity_id: entity };
    for (let turn = 0; turn < history / 2; turn += 1) {
      const response = await fetch(`${system.url}/chat`, {
        method: 'POST',
        headers: system.headers,
        body: JSON.stringify(body),
      });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${system.name} answered ${response.status}: ${text}`);
    }
  };
  await Promise.all(entities.map(fill));
  return entities;
}

export interface ContenderChoice {
  names: readonly string[];
  targets: readonly Target[];
  cases: readonly RivalCase[];
}

export interface Field {
  contenders: Contender[];
  /** Rivals that could not be started, and why. */
  absent: Record<string, string>;
}

/** As many as the largest case has clients: otherwise one worker's limit would be measured. */
const CONCURRENCY = { usual: 512, most: 1_024 };

function concurrencyFor(cases: readonly RivalCase[]): number | undefined {
  return cases.some(({ clients }) => clients > CONCURRENCY.usual) ? CONCURRENCY.most : undefined;
}

/** Starts what the cases need, one after the other. A rival that cannot be installed is left out; the others run. */
export async function startContenders(
  context: SystemOptions,
  { names, targets, cases }: ContenderChoice,
  nodeArgs: Parameters<typeof startParley>[1],
): Promise<Field> {
  const options = { ...context, concurrency: concurrencyFor(cases) };
  const contenders: Contender[] = [];
  const absent: Record<string, string> = {};
  if (names.includes('pass-through')) contenders.push(await startPassThrough(options));
  if (names.includes('portkey')) {
    const portkey = await startPortkey(options).catch((error: unknown) => {
      options.supervisor.signal.throwIfAborted();
      absent['portkey'] = error instanceof Error ? error.message : String(error);
      options.log(`portkey stays away: ${absent['portkey']}`);
    });
    if (portkey !== undefined) contenders.push(portkey);
  }
  if (names.includes('floor')) contenders.push(contenderOf('floor', await startFloor(options)));
  if (names.includes('parley')) {
    const parley = await startParley(options, nodeArgs);
    contenders.push(contenderOf('parley', parley, parley));
    if (cases.some(({ only }) => only?.includes(TWO_WORKERS) === true)) {
      const second = await startParley(options, {}, { folder: 'parley-2', workers: 2 });
      contenders.push(contenderOf(TWO_WORKERS, second, second));
    }
  }
  return { contenders: [...contenders, ...targets.map((target) => openAiContender(target))], absent };
}
