import type { ProcessKind } from '../config/load-config.ts';
import type { Config } from '../config/settings.ts';
import type { Closer } from '../lifecycle/closer.ts';
import type { Logger } from '../logging/logger.ts';
import type { Tracing } from './tracing.ts';

/** Undefined without `OTEL_EXPORTER_OTLP_ENDPOINT`: then no part of OpenTelemetry is even loaded. */
export async function openTracing(
  { tracing }: Config,
  kind: ProcessKind,
  closer: Closer,
  log: Logger,
): Promise<Tracing | undefined> {
  const { endpoint } = tracing;
  if (endpoint === undefined) return undefined;
  const { createOtlpTracing } = await import('./otlp-tracing.ts');
  const { close, ...spans } = createOtlpTracing({ serviceName: `parley-${kind}`, ...tracing, endpoint }, log);
  // Opened first and closed last, tracing also sends the spans of the last requests.
  closer.defer('tracing', close);
  return spans;
}
