/**
 * The load generator, a process of its own so that its cost is counted apart: takes a LoadSpec as a message and answers
 * with a LoadResult. It uses undici's dispatcher itself, which costs least. Ends with its parent.
 */
import { build } from 'hdr-histogram-js';
import { Client } from 'undici';
import type { Dispatcher } from 'undici';

import type { LoadResult, LoadSpec } from './load-spec.ts';

/** Only the end of an answer is looked at: a generator that parses is the bottleneck. */
const END_BYTES = 256;
const MARK_OF_END = { complete: '"finish_reason":"stop"', stream: 'data: [DONE]' } as const;
/** A server that refuses connections is not asked in a busy loop. */
const PAUSE_AFTER_ERROR_MS = 20;
const PERCENTILE_DIGITS = 3;

interface Answer {
  status: number;
  firstByteMs: number;
  end: Buffer;
}

function requestOnce(client: Client, options: Dispatcher.DispatchOptions): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const answer: Answer = { status: 0, firstByteMs: 0, end: Buffer.alloc(0) };
    client.dispatch(options, {
      // undici tells a handler of this form by its first method.
      onRequestStart: () => undefined,
      onResponseStart(_controller, status) {
        answer.status = status;
      },
      onResponseData(_controller, chunk) {
        if (answer.firstByteMs === 0) answer.firstByteMs = performance.now() - sentAt;
        answer.end = chunk.length >= END_BYTES ? chunk : Buffer.concat([answer.end, chunk]).subarray(-END_BYTES);
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
  if (status !== 200) return `status ${status}`;
  return end.includes(MARK_OF_END[mode]) ? undefined : 'an answer without its end';
}

async function generate(spec: LoadSpec): Promise<LoadResult> {
  const { origin, pathname } = new URL(spec.url);
  const options = { path: pathname, method: 'POST', headers: spec.headers, body: spec.body } as const;
  const latency = build({ numberOfSignificantValueDigits: PERCENTILE_DIGITS });
  const firstByte = build({ numberOfSignificantValueDigits: PERCENTILE_DIGITS });
  const errors: Record<string, number> = {};
  const startedAt = performance.now();
  const deadline = 'seconds' in spec.until ? startedAt + spec.until.seconds * 1000 : Infinity;
  let unsent = 'requests' in spec.until ? spec.until.requests : Infinity;
  let answeredInTime = 0;
  let endedAt = startedAt;

  async function sendOne(client: Client): Promise<void> {
    const sentAt = performance.now();
    try {
      const answer = await requestOnce(client, options);
      const fault = faultOf(answer, spec.mode);
      if (fault !== undefined) throw new Error(fault);
      endedAt = performance.now();
      if (endedAt <= deadline) answeredInTime += 1;
      latency.recordValue(Math.round((endedAt - sentAt) * 1000));
      firstByte.recordValue(Math.round(answer.firstByteMs * 1000));
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      errors[what] = (errors[what] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_AFTER_ERROR_MS));
    }
  }

  async function runClient(): Promise<void> {
    const client = new Client(origin, { headersTimeout: 0, bodyTimeout: 0 });
    while (unsent > 0 && performance.now() < deadline) {
      unsent -= 1;
      await sendOne(client);
    }
    await client.close();
  }

  await Promise.all(Array.from({ length: spec.clients }, runClient));
  // What was answered after the time was over is no throughput, but it cost CPU and counts for everything else.
  const seconds = 'seconds' in spec.until ? spec.until.seconds : (endedAt - startedAt) / 1000;
  const ms = (histogram: typeof latency, percentile: number) => histogram.getValueAtPercentile(percentile) / 1000;
  return {
    answered: latency.totalCount,
    requestsPerSecond: answeredInTime / seconds,
    errors,
    latencyMs: { p50: ms(latency, 50), p95: ms(latency, 95), p99: ms(latency, 99) },
    firstChunkMs: spec.mode === 'stream' ? { p50: ms(firstByte, 50) } : undefined,
  };
}

process.on('message', (spec: LoadSpec) => {
  void generate(spec).then((result) => process.send?.(result));
});
process.on('disconnect', () => {
  process.exit();
});
