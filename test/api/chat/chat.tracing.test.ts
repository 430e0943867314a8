import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, postChat, postStream, requestIdOf } from '../../support/chat.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';
import { startService } from '../../support/service.ts';
import type { TestService } from '../../support/service.ts';
import { startTraceCollector } from '../../support/trace-collector.ts';
import type { CollectedSpan, TraceCollector } from '../../support/trace-collector.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER_SPAN = '00f067aa0ba902b7';
const UNSAMPLED_TRACE = '5bf92f3577b34da6a3ce929d0e0e4736';

const USAGE = { prompt_tokens: 11, completion_tokens: 3, total_tokens: 14 };
const ANSWER = {
  model: 'gpt-test-2026',
  choices: [{ message: { content: 'canary-answer' }, finish_reason: 'stop' }],
  usage: USAGE,
};

async function routeTo(service: TestService, provider: ScriptedServer): Promise<void> {
  const key = { api_key: 'sk-canary-provider-key', max_retries: 1 };
  await service.setProvider({ kind: 'openai', base_url: `${provider.url}/v1`, ...key }, 'traced');
  await service.setTargets('mobius', [{ provider: 'traced', model: 'gpt-test', context_window: 128_000 }]);
  await service.startWorker();
}

function named(spans: CollectedSpan[], name: string): CollectedSpan {
  const [span, ...others] = spans.filter((each) => each.name === name);
  if (span === undefined || others.length > 0) throw new Error(`There are ${others.length} spans more of ${name}`);
  return span;
}

/** Spans are sent when a process ends, so all calls are made first and all is looked at afterwards. */
describe('with a collector, a chat request', () => {
  const ids = { complete: '', streamed: '', failed: '', unsampled: '', stranger: '' };
  let collector: TraceCollector;
  let provider: ScriptedServer;
  let key = '';
  let service: TestService;
  beforeAll(async () => {
    collector = await startTraceCollector();
    provider = await startScriptedServer();
    service = await startService({ workers: 0, env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
    await routeTo(service, provider);
    ({ key } = await service.startTenant());
  });
  beforeAll(async () => {
    const body = chatOf('canary-question', { entity_id: 'canary-entity', metadata: { note: 'canary-metadata' } });
    provider.answer((res) => res.setHeader('Content-Type', 'application/json').end(JSON.stringify(ANSWER)));
    const complete = postChat(service.app, key, body).set('traceparent', `00-${TRACE_ID}-${CALLER_SPAN}-01`);
    ids.complete = requestIdOf(await complete);
    ids.streamed = requestIdOf(await postStream(service.app, key, body));
    const unsampled = postChat(service.app, key, body).set('traceparent', `00-${UNSAMPLED_TRACE}-${CALLER_SPAN}-00`);
    ids.unsampled = requestIdOf(await unsampled);
    const stranger = postChat(service.app, `${key}x`, body).set('traceparent', `00-${TRACE_ID}-${CALLER_SPAN}-01`);
    ids.stranger = requestIdOf(await stranger.expect(401));
    provider.answer((res) => res.writeHead(500).end('canary-failure'));
    ids.failed = requestIdOf(await postChat(service.app, key, body));
  });
  beforeAll(async () => {
    await service.close();
  });
  afterAll(async () => {
    await provider.close();
    await collector.close();
  });

  const headerOf = (requestId: string) =>
    provider.requests.filter(({ headers }) => headers['x-request-id'] === requestId).map((call) => call.headers);

  it('is one trace of its own over the queue to the provider, linked with the span of its caller', () => {
    const spans = collector.spansOf(ids.complete);
    const call = named(spans, 'POST /platform/v1/chat');
    const wait = named(spans, 'receive interactive');
    const moderation = named(spans, 'moderate');
    const asked = named(spans, 'chat gpt-test');

    expect(spans).toHaveLength(4);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([call.traceId]));
    expect(call).toMatchObject({ parentSpanId: '', kind: 2, service: 'parley-api', isError: false });
    expect(call.traceId).not.toBe(TRACE_ID);
    expect(call.links).toEqual([{ traceId: TRACE_ID, spanId: CALLER_SPAN }]);
    expect(wait).toMatchObject({ parentSpanId: call.spanId, kind: 5, service: 'parley-worker' });
    expect(moderation).toMatchObject({ parentSpanId: call.spanId, kind: 1, isError: false });
    expect(asked).toMatchObject({ parentSpanId: call.spanId, kind: 3, isError: false });
    expect(asked.startMs).toBeGreaterThanOrEqual(wait.endMs);
    expect(call.endMs).toBeGreaterThanOrEqual(asked.endMs);
    expect(call.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/platform/v1/chat',
      'http.response.status_code': 200,
    });
    expect(moderation.attributes).toMatchObject({ 'parley.moderation.verdict': 'passed' });
  });

  it('has the attributes of the GenAI conventions on its provider call', () => {
    const { hostname, port } = new URL(provider.url);
    expect(named(collector.spansOf(ids.complete), 'chat gpt-test').attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-test',
      'gen_ai.response.model': 'gpt-test-2026',
      'gen_ai.usage.input_tokens': USAGE.prompt_tokens,
      'gen_ai.usage.output_tokens': USAGE.completion_tokens,
      'gen_ai.response.finish_reasons': ['stop'],
      'server.address': hostname,
      'server.port': Number(port),
      'parley.provider': 'traced',
    });
  });

  it('tells the provider the span of its call', () => {
    const { traceId, spanId } = named(collector.spansOf(ids.complete), 'chat gpt-test');
    expect(headerOf(ids.complete)).toMatchObject([{ traceparent: `00-${traceId}-${spanId}-01` }]);
  });

  it('begins a trace where its caller has none', () => {
    const spans = collector.spansOf(ids.streamed);
    const call = named(spans, 'POST /platform/v1/chat/stream');
    expect(call.parentSpanId).toBe('');
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([call.traceId]));
    expect(named(spans, 'chat gpt-test').parentSpanId).toBe(call.spanId);
  });

  it('has a span for each failed provider call, with its status as error.type', () => {
    const spans = collector.spansOf(ids.failed);
    const asked = spans.filter(({ name }) => name === 'chat gpt-test');
    expect(asked).toHaveLength(2);
    for (const span of asked) expect(span).toMatchObject({ isError: true, attributes: { 'error.type': '500' } });
    expect(named(spans, 'POST /platform/v1/chat')).toMatchObject({
      isError: true,
      attributes: { 'error.type': '503' },
    });
  });

  it('is sampled as the operator says, not as its caller does', () => {
    const call = named(collector.spansOf(ids.unsampled), 'POST /platform/v1/chat');
    expect(call.links).toEqual([{ traceId: UNSAMPLED_TRACE, spanId: CALLER_SPAN }]);
  });

  it('leaves no span before its key is known, whatever its caller says of sampling', () => {
    expect(collector.spansOf(ids.stranger)).toEqual([]);
  });

  it('puts nothing of its text, its keys and its entity into a span', () => {
    const text = collector.text();
    expect(text).toContain(ids.complete);
    expect(text).not.toContain('canary');
    expect(text).not.toContain(key);
  });
});

describe('without a collector', () => {
  it('a provider gets no traceparent, whatever the caller sent', async () => {
    const provider = await startScriptedServer();
    const service = await startService({ workers: 0 });
    try {
      await routeTo(service, provider);
      const { key } = await service.startTenant();
      provider.answer((res) => res.setHeader('Content-Type', 'application/json').end(JSON.stringify(ANSWER)));

      const response = await postChat(service.app, key, chatOf('Hello')).set(
        'traceparent',
        `00-${TRACE_ID}-${CALLER_SPAN}-01`,
      );

      expect(response.status).toBe(200);
      expect(provider.requests.map(({ headers }) => headers['traceparent'])).toEqual([undefined]);
    } finally {
      await service.close();
      await provider.close();
    }
  });
});
