import { startScriptedServer } from './scripted-server.ts';

/** A span as a collector gets it. */
export interface CollectedSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  /** OTLP: 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number;
  startMs: number;
  endMs: number;
  isError: boolean;
  service: string;
  links: { traceId: string; spanId: string }[];
  attributes: Record<string, unknown>;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}

interface WireSpan extends Omit<CollectedSpan, 'attributes'> {
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code?: number; message?: string };
  attributes: Attribute[];
}

interface WireExport {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: WireSpan[] }[] }[];
}

function valueOf(value: Record<string, unknown>): unknown {
  const list = value['arrayValue'] as { values: Record<string, unknown>[] } | undefined;
  if (list !== undefined) return list.values.map(valueOf);
  return 'intValue' in value ? Number(value['intValue']) : Object.values(value)[0];
}

const attributesOf = (list: Attribute[]) => Object.fromEntries(list.map(({ key, value }) => [key, valueOf(value)]));

function spansOf(body: string): CollectedSpan[] {
  const { resourceSpans } = JSON.parse(body) as WireExport;
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: (span.parentSpanId as string | undefined) ?? '',
        kind: span.kind,
        startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
        isError: span.status.code === 2,
        service: String(attributesOf(resource.attributes)['service.name']),
        links: ((span.links as CollectedSpan['links'] | undefined) ?? []).map(({ traceId, spanId }) => ({
          traceId,
          spanId,
        })),
        attributes: attributesOf(span.attributes),
      })),
    ),
  );
}

export interface TraceCollector {
  url: string;
  /** All that has arrived, as it was sent. */
  text(): string;
  /** The spans of a request, those that began first ahead. */
  spansOf(requestId: string): CollectedSpan[];
  close(): Promise<void>;
}

/** Takes spans by OTLP over HTTP with JSON, as a collector does. */
export async function startTraceCollector(): Promise<TraceCollector> {
  const server = await startScriptedServer();
  server.answer((res) => res.setHeader('Content-Type', 'application/json').end('{}'));
  const bodies = () => server.requests.filter(({ url }) => url === '/v1/traces').map(({ body }) => body);
  return {
    url: server.url,
    text: () => bodies().join('\n'),
    spansOf: (requestId) =>
      bodies()
        .flatMap(spansOf)
        .filter(({ attributes }) => attributes['parley.request.id'] === requestId)
        .sort((a, b) => a.startMs - b.startMs),
    close: () => server.close(),
  };
}
