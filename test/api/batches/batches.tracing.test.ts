import { afterAll, beforeAll, expect, it } from '@jest/globals';

import { itemOf, postLines, resultsOf } from '../../support/batch-client.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';
import { startService } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { startTraceCollector } from '../../support/trace-collector.ts';
import type { CollectedSpan, TraceCollector } from '../../support/trace-collector.ts';
import { waitFor } from '../../support/wait-for.ts';

const CALLER = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const ANSWER = {
  model: 'gpt-test-2026',
  choices: [{ message: { content: 'canary-answer' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 11, completion_tokens: 3, total_tokens: 14 },
};

let collector: TraceCollector;
let provider: ScriptedServer;
let requestIds: string[] = [];
/** Spans are sent when a process ends: the batch runs first, and its spans are looked at afterwards. */
beforeAll(async () => {
  collector = await startTraceCollector();
  provider = await startScriptedServer();
  provider.answer((res) => res.setHeader('Content-Type', 'application/json').end(JSON.stringify(ANSWER)));
  const service = await startService({ workers: 0, env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
  await service.setProvider({ kind: 'openai', base_url: `${provider.url}/v1`, api_key: 'sk-canary' }, 'traced');
  await service.setTargets('mobius', [{ provider: 'traced', model: 'gpt-test', context_window: 128_000 }]);
  await service.startWorker();
  const { key } = await service.startTenant();
  const lines = [itemOf('canary-line-1'), itemOf('canary-line-2')];
  const { body: batch } = await postLines(service, key, lines, { traceparent: CALLER });
  const { id } = batch as { id: string };
  await waitFor(async () => {
    const { body } = await apiOf(service, key)('get', `/batches/${id}`);
    return body.status === 'completed' ? true : undefined;
  }, 'the batch');
  requestIds = (await resultsOf(service, key, id)).map((line) => line.request_id);
  await service.close();
}, 60_000);
afterAll(async () => {
  await provider.close();
  await collector.close();
});

function named(spans: CollectedSpan[], name: string): CollectedSpan {
  const found = spans.filter((each) => each.name === name);
  expect(found).toHaveLength(1);
  return found[0] as CollectedSpan;
}

it('a line of a batch has one trace, from its wait in line to its provider call', () => {
  expect(requestIds).toHaveLength(2);
  for (const requestId of requestIds) {
    const spans = collector.spansOf(requestId);
    const wait = named(spans, 'receive batch');
    const [moderation, asked] = [named(spans, 'moderate'), named(spans, 'chat gpt-test')];
    expect(spans).toHaveLength(3);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    // The call that brought it may have ended hours ago.
    expect(wait).toMatchObject({ parentSpanId: '', kind: 5, service: 'parley-worker' });
    expect([moderation.parentSpanId, asked.parentSpanId]).toEqual([wait.spanId, wait.spanId]);
    expect(asked.startMs).toBeGreaterThanOrEqual(wait.endMs);

    const calls = provider.requests.filter(({ headers }) => headers['x-request-id'] === requestId);
    expect(calls.map(({ headers }) => headers['traceparent'])).toEqual([`00-${asked.traceId}-${asked.spanId}-01`]);
  }
});

it('lines of a batch have traces of their own, without a word of what they ask', () => {
  const traces = requestIds.map((requestId) => collector.spansOf(requestId)[0]?.traceId);
  expect(new Set(traces).size).toBe(2);
  expect(collector.text()).not.toContain('canary');
});
