/**
 * The load generator, a separate process so that its cost is counted separately: receives a LoadSpec as a message and
 * answers with a LoadResult. It uses undici's dispatcher directly, which is cheapest. Ends with its parent.
 */
import { createHistogram } from 'node:perf_hooks';
import type { RecordableHistogram } from 'node:perf_hooks';

import { Client } from 'undici';
import type { Dispatcher } from 'undici';

import type { LoadResult, LoadSpec } from './load.ts';

/** Only the end of an answer is checked: a generator that parsed answers would be the bottleneck. */
const END_BYTES = 256;
const MARK_OF_END = { complete: '"finish_reason":"stop"', stream: 'data: [DONE]' } as const;
const TEXT = Buffer.from('"content":"');
const QUOTE = 0x22;
/** The pause after an error, so that a server that refuses connections is not called in a busy loop. */
const PAUSE_AFTER_ERROR_MS = 20;
const PERCENTILE_DIGITS = 3;

interface Answer {
  status: number;
  firstTextMs: number;
  end: Buffer;
}

/** Chunks that only name the role have empty text. */
function hasText(part: Buffer): boolean {
  for (let at = part.indexOf(TEXT); at !== -1; at = part.indexOf(TEXT, at + 1)) {
    if (part[at + TEXT.length] !== QUOTE) return true;
  }
  return false;
}

function exchange(client: Client, options: Dispatcher.DispatchOptions): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const answer: Answer = { status: 0, firstTextMs: 0, end: Buffer.alloc(0) };
    client.dispatch(options, {
      // undici recognizes this form of handler by its first method.
      onRequestStart: () => undefined,
      onResponseStart(_controller, status) {
        answer.status = status;
      },
      onResponseData(_controller, part) {
        if (answer.firstTextMs === 0 && hasText(part)) answer.firstTextMs = performance.now() - sentAt;
        answer.end = part.length >= END_BYTES ? part : Buffer.concat([answer.end, part]).subarray(-END_BYTES);
      },
      onResponseEnd() {
        resolve(answer);
      },
      onResponseError(_controller, error) {
        reject(error);
      },
    });
  });
}

function faultOf({ status, end }: Answer, mode: LoadSpec['mode']): string | undefined {
  if (status !== 200)
    return `status ${status} ${/"code":\s*"\w+"|"message":\s*"[^"]*"/.exec(end.toString())?.[0] ?? ''}`.trimEnd();
  return end.includes(MARK_OF_END[mode]) ? undefined : 'an answer without its end';
}

/** A histogram takes no zero. */
const microsOf = (ms: number) => Math.max(1, Math.round(ms * 1000));

async function generate({ url, headers, bodies, mode, clients, seconds }: LoadSpec): Promise<LoadResult> {
  const { origin, pathname } = new URL(url);
  const latency = createHistogram({ figures: PERCENTILE_DIGITS });
  const firstText = createHistogram({ figures: PERCENTILE_DIGITS });
  const errors: Record<string, number> = {};
  const deadline = performance.now() + seconds * 1000;
  let answeredInTime = 0;

  async function sendOne(client: Client, body: string): Promise<void> {
    const sentAt = performance.now();
    try {
      const answer = await exchange(client, { path: pathname, method: 'POST', headers, body });
      const fault = faultOf(answer, mode);
      if (fault !== undefined) throw new Error(fault);
      const endedAt = performance.now();
      if (endedAt <= deadline) answeredInTime += 1;
      latency.record(microsOf(endedAt - sentAt));
      firstText.record(microsOf(answer.firstTextMs));
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      errors[what] = (errors[what] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_AFTER_ERROR_MS));
    }
  }

  async function runClient(_: unknown, index: number): Promise<void> {
    const client = new Client(origin, { headersTimeout: 0, bodyTimeout: 0 });
    while (performance.now() < deadline) await sendOne(client, bodies[index % bodies.length] ?? '');
    await client.close();
  }

  await Promise.all(Array.from({ length: clients }).map(runClient));
  // Answers after the time limit do not count as throughput, but count in everything else, because they cost CPU too.
  const ms = (histogram: RecordableHistogram, percentile: number) => histogram.percentile(percentile) / 1000;
  return {
    answered: latency.count,
    perSecond: answeredInTime / seconds,
    errors,
    latencyMs: { p50: ms(latency, 50), p99: ms(latency, 99) },
    firstTextMs: mode === 'stream' ? { p50: ms(firstText, 50), p99: ms(firstText, 99) } : undefined,
  };
}

process.on('message', (spec: LoadSpec) => {
  void generate(spec).then((result) => process.send?.(result));
});
process.on('disconnect', () => {
  process.exit();
});
