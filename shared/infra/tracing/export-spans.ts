import { ExportResultCode } from '@opentelemetry/core';
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
import { ATTR_SERVICE_NAME } from '@opentelemetry/semantic-conventions';

import type { TracingConfig } from '../../config/tracing-settings.ts';
import type { Logger } from '../logging/logger.ts';

/** A collector that is away is told of once in so long. */
const TOLD_EVERY_MS = 60_000;

function samplerOf({ sampler, samplerArg }: TracingConfig): Sampler {
  const roots: Record<string, () => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(samplerArg),
  };
  const root = roots[sampler.replace(/^parentbased_/, '')]?.() ?? new AlwaysOnSampler();
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

/** The SDK loses spans in silence. */
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

/** Sends what is sampled by OTLP over HTTP with JSON, in batches. A full buffer drops spans and never waits. */
export function createTracerProvider(config: TracingConfig & { serviceName: string }, log: Logger): TracerProvider {
  const exporter = new OTLPTraceExporter({ url: `${config.endpoint.replace(/\/+$/, '')}/v1/traces` });
  return new TracerProvider({
    resource: resourceFromAttributes({ [ATTR_SERVICE_NAME]: config.serviceName }),
    sampler: samplerOf(config),
    spanProcessors: [new BatchSpanProcessor({ exporter: logFailures(exporter, log) })],
  });
}
