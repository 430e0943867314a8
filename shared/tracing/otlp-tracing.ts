import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Link, Span, SpanOptions } from '@opentelemetry/api';
import { ExportResultCode, parseTraceParent } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Sampler, SpanExporter } from '@opentelemetry/sdk-trace';
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_SERVICE_NAME,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions';

import type { Config } from '../config/settings.ts';
import type { Logger } from '../logging/logger.ts';
import type { OpenSpan, ProviderCallOutcome, StartedProviderCall, Tracing } from './tracing.ts';

/** The log tells of an absent collector once in this time. */
const TOLD_EVERY_MS = 60_000;

type TracingSettings = Config['tracing'] & { endpoint: string; serviceName: string };

function samplerOf({ sampler, samplerArg }: TracingSettings): Sampler {
  const roots: Record<string, () => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(samplerArg),
  };
  const root = roots[sampler.replace(/^parentbased_/, '')]?.() ?? new AlwaysOnSampler();
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

/** The SDK loses spans silently. */
function logFailures(exporter: SpanExporter, log: Logger): SpanExporter {
  let toldAt = -Infinity;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code === ExportResultCode.FAILED && performance.now() - toldAt >= TOLD_EVERY_MS) {
          toldAt = performance.now();
          log.warn('Spans could not be sent to the collector; requests are served all the same.', {
            error: result.error,
          });
        }
        done(result);
      });
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}

/** Sends sampled spans by OTLP over HTTP with JSON, in batches. A full buffer drops spans and never waits. */
function createTracerProvider(config: TracingSettings, log: Logger): TracerProvider {
  const exporter = new OTLPTraceExporter({ url: `${config.endpoint.replace(/\/+$/, '')}/v1/traces` });
  return new TracerProvider({
    resource: resourceFromAttributes({ [ATTR_SERVICE_NAME]: config.serviceName }),
    sampler: samplerOf(config),
    spanProcessors: [new BatchSpanProcessor({ exporter: logFailures(exporter, log) })],
  });
}

/** Unstable names, which users of the package copy. Source: open-telemetry/semantic-conventions-genai. */
const GEN_AI = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  maxTokens: 'gen_ai.request.max_tokens',
  stream: 'gen_ai.request.stream',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
} as const;
const MESSAGING = {
  system: 'messaging.system',
  operation: 'messaging.operation.name',
  destination: 'messaging.destination.name',
} as const;
/** Joins spans with log lines and callers' ids. */
const REQUEST_ID = 'parley.request.id';
/** The administrator's name of the provider; GenAI conventions name its protocol only. */
const PROVIDER = 'parley.provider';
const MODERATION_BACKEND = 'parley.moderation.backend';
const MODERATION_VERDICT = 'parley.moderation.verdict';

/** Of the caller's span, unless the traceparent is invalid. */
function linksTo(traceparent: string | undefined): Link[] {
  const context = traceparent === undefined ? null : parseTraceParent(traceparent);
  return context === null ? [] : [{ context: { ...context, isRemote: true } }];
}

/** An invalid traceparent begins a new trace, as W3C Trace Context wants it. */
function contextOf(traceparent: string | undefined): Context {
  const parent = traceparent === undefined ? null : parseTraceParent(traceparent);
  return parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true });
}

function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${(traceFlags & 1) === 1 ? '01' : '00'}`;
}

function opened<Result>(span: Span, note: (result: Result) => void): OpenSpan<Result> {
  return {
    traceparent: traceparentOf(span),
    end(result) {
      note(result);
      span.end();
    },
  };
}

/** Leaves out the message: it may have words of a caller or provider. */
function fail(span: Span, error: string): void {
  span.setAttribute(ATTR_ERROR_TYPE, error).setStatus({ code: SpanStatusCode.ERROR });
}

function attributesOf({ provider, model, maxTokens, stream, requestId }: StartedProviderCall): Attributes {
  const { hostname, port, protocol } = new URL(provider.baseUrl);
  return {
    [GEN_AI.operation]: 'chat',
    [GEN_AI.provider]: provider.kind,
    [GEN_AI.requestModel]: model,
    [GEN_AI.maxTokens]: maxTokens,
    [GEN_AI.stream]: stream,
    [ATTR_SERVER_ADDRESS]: hostname,
    [ATTR_SERVER_PORT]: Number(port === '' ? ({ 'https:': 443 }[protocol] ?? 80) : port),
    [PROVIDER]: provider.name,
    [REQUEST_ID]: requestId,
  };
}

function recordAnswer(span: Span, outcome: ProviderCallOutcome): void {
  if ('error' in outcome) {
    fail(span, outcome.error);
    return;
  }
  const { finishReason, usage, model } = outcome;
  span.setAttribute(GEN_AI.finishReasons, [finishReason]);
  if (model !== undefined) span.setAttribute(GEN_AI.responseModel, model);
  if (usage === undefined) return;
  span.setAttribute(GEN_AI.inputTokens, usage.promptTokens);
  span.setAttribute(GEN_AI.outputTokens, usage.completionTokens);
}

/** Registers nothing globally, so nothing else of the process is traced. */
export function createOtlpTracing(config: TracingSettings, log: Logger): Tracing & { close: () => Promise<void> } {
  const provider = createTracerProvider(config, log);
  const tracer = provider.getTracer('parley');
  const start = (name: string, parent: string | undefined, options: SpanOptions) =>
    tracer.startSpan(name, options, contextOf(parent));

  return {
    receive({ method, route, scheme, requestId, caller }) {
      const span = start(`${method} ${route}`, undefined, {
        kind: SpanKind.SERVER,
        links: linksTo(caller),
        attributes: {
          [ATTR_HTTP_REQUEST_METHOD]: method,
          [ATTR_HTTP_ROUTE]: route,
          [ATTR_URL_PATH]: route,
          [ATTR_URL_SCHEME]: scheme,
          [REQUEST_ID]: requestId,
        },
      });
      return opened(span, (status) => {
        if (status === undefined) return;
        span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, status);
        // A caller's mistake is no error of a server (semantic conventions of HTTP).
        if (status >= 500) fail(span, String(status));
      });
    },

    waited({ queue, requestId, parent, acceptedAt, claimedAt }) {
      const span = start(`receive ${queue}`, parent, {
        kind: SpanKind.CONSUMER,
        startTime: acceptedAt,
        attributes: {
          [MESSAGING.system]: 'bullmq',
          [MESSAGING.operation]: 'receive',
          [MESSAGING.destination]: queue,
          [REQUEST_ID]: requestId,
        },
      });
      span.end(Math.max(acceptedAt, claimedAt));
      return traceparentOf(span);
    },

    moderate({ requestId, parent }) {
      const span = start('moderate', parent, { attributes: { [REQUEST_ID]: requestId } });
      return opened(span, (moderation) => {
        if (moderation === undefined) return;
        span.setAttribute(MODERATION_BACKEND, moderation.backend).setAttribute(MODERATION_VERDICT, moderation.verdict);
        if (moderation.verdict === 'unavailable') fail(span, 'unavailable');
      });
    },

    callProvider(call) {
      const options = { kind: SpanKind.CLIENT, attributes: attributesOf(call) };
      const span = start(`chat ${call.model}`, call.parent, options);
      return opened(span, (outcome) => {
        recordAnswer(span, outcome);
      });
    },

    close: () => provider.shutdown(),
  };
}
