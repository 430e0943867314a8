/**
 * The load generator, a separate process so that its cost is counted separately: receives a LoadSpec as a message and
 * answers with a LoadResult. It uses undici's dispatcher directly, which is cheapest. Ends with its parent.
 */
import { build } from 'hdr-histogram-js';
import { Client } from 'undici';

import { exchange, exchangeResumed } from './exchange.ts';
import type { Answer } from './exchange.ts';
import type { LoadResult, LoadSpec } from './load-spec.ts';

const MARK_OF_END = { complete: '"finish_reason":"stop"', stream: 'data: [DONE]' } as const;
/** The pause after an error, so that a server that refuses connections is not called in a busy loop. */
const PAUSE_AFTER_ERROR_MS = 20;
const PERCENTILE_DIGITS = 3;

function faultOf({ status, end, isBroken }: Answer, mode: LoadSpec['mode']): string | undefined {
  if (status !== 200)
    return `status ${status} ${/"code":\s*"\w+"|"message":\s*"[^"]*"/.exec(end.toString())?.[0] ?? ''}`.trimEnd();
  if (isBroken === true) return 'a resumed stream with events twice or missing';
  return end.includes(MARK_OF_END[mode]) ? undefined : 'an answer without its end';
}

async function generate(spec: LoadSpec): Promise<LoadResult> {
  const { origin, pathname } = new URL(spec.url);
  const { resume } = spec;
  const latency = build({ numberOfSignificantValueDigits: PERCENTILE_DIGITS });
  const firstText = build({ numberOfSignificantValueDigits: PERCENTILE_DIGITS });
  const resumed = build({ numberOfSignificantValueDigits: PERCENTILE_DIGITS });
  const errors: Record<string, number> = {};
  const startedAt = performance.now();
  const deadline = 'seconds' in spec.until ? startedAt + spec.until.seconds * 1000 : Infinity;
  let unsent = 'requests' in spec.until ? spec.until.requests : Infinity;
  let answeredInTime = 0;
  let endedAt = startedAt;

  async function sendOne(client: Client, headers: LoadSpec['headers'], body: string): Promise<void> {
    const sentAt = performance.now();
    const options = { path: pathname, method: 'POST', headers, body } as const;
    try {
      const answer =
        resume === undefined
          ? await exchange(client, options)
          : await exchangeResumed(client, options, { headers, resume });
      const fault = faultOf(answer, spec.mode);
      if (fault !== undefined) throw new Error(fault);
      endedAt = performance.now();
      if (endedAt <= deadline) answeredInTime += 1;
      latency.recordValue(Math.round((endedAt - sentAt) * 1000));
      firstText.recordValue(Math.round(answer.firstTextMs * 1000));
      if (answer.resumedMs !== undefined) resumed.recordValue(Math.round(answer.resumedMs * 1000));
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      errors[what] = (errors[what] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_AFTER_ERROR_MS));
    }
  }

  async function runClient(_: unknown, index: number): Promise<void> {
    const body = spec.bodies[index % spec.bodies.length] ?? '';
    const key = spec.keys?.[index % spec.keys.length];
    const headers = key === undefined ? spec.headers : { ...spec.headers, Authorization: `Bearer ${key}` };
    const client = new Client(origin, { headersTimeout: 0, bodyTimeout: 0 });
    while (unsent > 0 && performance.now() < deadline) {
      unsent -= 1;
      await sendOne(client, headers, body);
    }
    await client.close();
  }

  await Promise.all(Array.from({ length: spec.clients }).map(runClient));
  // Answers after the time limit do not count as throughput, but count in everything else, because they cost CPU too.
  const seconds = 'seconds' in spec.until ? spec.until.seconds : (endedAt - startedAt) / 1000;
  const ms = (histogram: typeof latency, percentile: number) => histogram.getValueAtPercentile(percentile) / 1000;
  return {
    answered: latency.totalCount,
    requestsPerSecond: answeredInTime / seconds,
    errors,
    latencyMs: { p50: ms(latency, 50), p95: ms(latency, 95), p99: ms(latency, 99) },
    firstChunkMs: spec.mode === 'stream' ? { p50: ms(firstText, 50), p99: ms(firstText, 99) } : undefined,
    resumedMs: resume === undefined ? undefined : { p50: ms(resumed, 50), p99: ms(resumed, 99) },
  };
}

process.on('message', (spec: LoadSpec) => {
  void generate(spec).then((result) => process.send?.(result));
});
process.on('disconnect', () => {
  process.exit();
});
