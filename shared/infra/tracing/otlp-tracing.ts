import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Span, SpanOptions } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions';
import {
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_GEN_AI_PROVIDER_NAME,
  ATTR_GEN_AI_REQUEST_MAX_TOKENS,
  ATTR_GEN_AI_REQUEST_MODEL,
  ATTR_GEN_AI_REQUEST_STREAM,
  ATTR_GEN_AI_RESPONSE_FINISH_REASONS,
  ATTR_GEN_AI_RESPONSE_MODEL,
  ATTR_GEN_AI_USAGE_INPUT_TOKENS,
  ATTR_GEN_AI_USAGE_OUTPUT_TOKENS,
  ATTR_MESSAGING_DESTINATION_NAME,
  ATTR_MESSAGING_OPERATION_NAME,
  ATTR_MESSAGING_SYSTEM,
} from '@opentelemetry/semantic-conventions/incubating';

import type { TracingConfig } from '../../config/load-config.ts';
import type { Logger } from '../logging/logger.ts';
import { createTracerProvider } from './export-spans.ts';
import type { OpenSpan, ProviderCallOutcome, StartedProviderCall, Tracing } from './tracing.ts';

/** Joins spans with log lines and with what callers have. */
const REQUEST_ID = 'parley.request.id';
/** The name that the administrator gave the provider; GenAI conventions have a name for its protocol only. */
const PROVIDER = 'parley.provider';
const MODERATION_BACKEND = 'parley.moderation.backend';
const MODERATION_VERDICT = 'parley.moderation.verdict';

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

/** Never with a message: an error's words may be a caller's or a provider's. */
function fail(span: Span, error: string): void {
  span.setAttribute(ATTR_ERROR_TYPE, error).setStatus({ code: SpanStatusCode.ERROR });
}

function attributesOf({ provider, model, maxTokens, stream, requestId }: StartedProviderCall): Attributes {
  const { hostname, port, protocol } = new URL(provider.baseUrl);
  return {
    [ATTR_GEN_AI_OPERATION_NAME]: 'chat',
    [ATTR_GEN_AI_PROVIDER_NAME]: provider.kind,
    [ATTR_GEN_AI_REQUEST_MODEL]: model,
    [ATTR_GEN_AI_REQUEST_MAX_TOKENS]: maxTokens,
    [ATTR_GEN_AI_REQUEST_STREAM]: stream,
    [ATTR_SERVER_ADDRESS]: hostname,
    [ATTR_SERVER_PORT]: Number(port === '' ? ({ 'https:': 443 }[protocol] ?? 80) : port),
    [PROVIDER]: provider.name,
    [REQUEST_ID]: requestId,
  };
}

function noteAnswer(span: Span, outcome: ProviderCallOutcome): void {
  if ('error' in outcome) {
    fail(span, outcome.error);
    return;
  }
  const { finishReason, usage, model } = outcome;
  span.setAttribute(ATTR_GEN_AI_RESPONSE_FINISH_REASONS, [finishReason]);
  if (model !== undefined) span.setAttribute(ATTR_GEN_AI_RESPONSE_MODEL, model);
  if (usage === undefined) return;
  span.setAttribute(ATTR_GEN_AI_USAGE_INPUT_TOKENS, usage.promptTokens);
  span.setAttribute(ATTR_GEN_AI_USAGE_OUTPUT_TOKENS, usage.completionTokens);
}

/** Tracing by OpenTelemetry's SDK. Nothing is registered globally, so nothing else of the process is traced. */
export function createOtlpTracing(
  config: TracingConfig & { serviceName: string },
  log: Logger,
): Tracing & { close: () => Promise<void> } {
  const provider = createTracerProvider(config, log);
  const tracer = provider.getTracer('parley');
  const start = (name: string, parent: string | undefined, options: SpanOptions) =>
    tracer.startSpan(name, options, contextOf(parent));

  return {
    receive({ method, route, scheme, requestId, parent }) {
      const span = start(`${method} ${route}`, parent, {
        kind: SpanKind.SERVER,
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
        // What a caller did wrong is no error of a server (semantic conventions of HTTP).
        if (status >= 500) fail(span, String(status));
      });
    },

    waited({ queue, requestId, parent, acceptedAt, claimedAt }) {
      const span = start(`receive ${queue}`, parent, {
        kind: SpanKind.CONSUMER,
        startTime: acceptedAt,
        attributes: {
          [ATTR_MESSAGING_SYSTEM]: 'bullmq',
          [ATTR_MESSAGING_OPERATION_NAME]: 'receive',
          [ATTR_MESSAGING_DESTINATION_NAME]: queue,
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
        noteAnswer(span, outcome);
      });
    },

    close: () => provider.shutdown(),
  };
}
