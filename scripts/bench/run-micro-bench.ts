import { setMaxListeners } from 'node:events';

import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { createHttpClient } from '../../shared/http/http-client.ts';
import { createLocalModerator } from '../../workers/moderation/local/local-moderator.ts';
import { openLocalWindow } from '../../workers/moderation/local/phrase-window.ts';
import { createAdapters } from '../../workers/open-pipeline.ts';
import { estimatePrompt } from '../../workers/pipeline/spending.ts';
import { runProviderCall } from '../../workers/pipeline/run-provider-call.ts';
import type { ProviderCallInput } from '../../workers/pipeline/run-provider-call.ts';
import type { SupervisedTask } from '../harness/run-supervised.ts';
import { superviseProvider } from '../harness/supervise-provider.ts';
import { SENTENCE, textOf } from './bench-cases.ts';
import { figure, formatTable, median } from './format-table.ts';

/** One step of a request, run alone in this process. */
interface Piece {
  name: string;
  /** Runs the step this many times. */
  run: (times: number) => Promise<void> | void;
  times: number;
}

const CLIENTS = 32;

function callInput(url: string, model: string, stream: boolean, moderator: ReturnType<typeof createLocalModerator>) {
  const signal = new AbortController().signal;
  setMaxListeners(0, signal);
  const messages: ChatMessage[] = [{ role: 'user', content: SENTENCE }];
  const input: ProviderCallInput = {
    envelope: {
      requestId: 'req_1',
      tenantId: 'ten_1',
      keyId: 'key_1',
      mode: 'live',
      endpoint: 'chat',
      tier: 'mobius',
      stream,
      acceptedAt: 0,
      retentionMs: 900_000,
      tenant: {},
      request: { messages, maxTokens: 1_000, jsonMode: false },
    },
    target: { provider: 'p', model, weight: 1, priority: 1, contextWindow: 100_000 },
    provider: {
      name: 'p',
      kind: 'openai',
      baseUrl: `${url}/v1`,
      timeoutMs: 60_000,
      firstTokenTimeoutMs: 60_000,
      maxRetries: 0,
    },
    messages,
    stream,
    outer: signal,
    firstTokenMs: 60_000,
    betweenTokensMs: 30_000,
    openWindow: (listener) => openLocalWindow(moderator, undefined, listener),
    onIncrement: () => undefined,
  };
  return input;
}

function pieces(url: string): Piece[] {
  const moderator = createLocalModerator();
  const http = createHttpClient();
  const adapter = createAdapters(http).openai;
  const check = (bytes: number, times: number): Piece => {
    const text = textOf(bytes);
    return {
      name: `moderate a prompt of ${bytes} bytes`,
      times,
      run: (count) => {
        for (let index = 0; index < count; index += 1) moderator.checkSync(text);
      },
    };
  };
  const long = [{ role: 'user' as const, content: textOf(200_000) }];
  const call = (stream: boolean): Piece => {
    const input = callInput(url, 'sim?chunks=40', stream, moderator);
    return {
      name: `provider call, ${stream ? '40 chunks' : 'complete'}, ${CLIENTS} at once`,
      times: 2_000,
      run: async (count) => {
        let left = count;
        const work = async () => {
          while ((left -= 1) >= 0) await runProviderCall(adapter, input);
        };
        await Promise.all(Array.from({ length: CLIENTS }, work));
      },
    };
  };
  return [
    check(84, 20_000),
    check(10_000, 200),
    check(200_000, 20),
    {
      name: 'count a prompt of 200000 bytes',
      times: 200,
      run: (count) => {
        for (let index = 0; index < count; index += 1) estimatePrompt(long);
      },
    },
    call(false),
    call(true),
  ];
}

async function cpuMicros({ run, times }: Piece): Promise<number> {
  const before = process.cpuUsage();
  await run(times);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

/** What single steps of a request cost in CPU time of this process. Returns the exit code. */
export async function runMicroBench(
  { supervisor, dataDir }: SupervisedTask,
  rounds: number,
  print: (line: string) => void,
): Promise<number> {
  const { url } = await superviseProvider(supervisor, dataDir);
  const all = pieces(url);
  // Twice as many runs as are measured, so that the JIT is done.
  for (const piece of all) await piece.run(piece.times * 2);
  const micros = new Map<string, number[]>(all.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const piece of all) micros.get(piece.name)?.push(await cpuMicros(piece));
  }
  const rows = [...micros].map(([name, values]) => [
    name,
    ...[median(values), Math.min(...values), Math.max(...values)].map(figure),
  ]);
  print(['', ...formatTable(['step', 'CPU µs, median', 'min', 'max'], rows)].join('\n'));
  return 0;
}
