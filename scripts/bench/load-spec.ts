/** The messages between the benchmark and its load generator. */

export type Mode = 'complete' | 'stream';

export interface LoadSpec {
  /** The whole URL to which every request is sent. */
  url: string;
  headers: Record<string, string>;
  /** Clients take them in turn and keep theirs, because an entity may have only one request at a time. */
  bodies: readonly string[];
  mode: Mode;
  /** Each client has its own connection and sends its next request once it has read the last answer. */
  clients: number;
  /** When the clients stop: after a time, or after a number of requests. */
  until: { seconds: number } | { requests: number };
  /** Each stream is cut after this many events, and resumed at `url` followed by its id. */
  resume?: { url: string; afterEvents: number };
  /** Keys used in turn instead of the one in `headers`, because each may resume only some streams per minute. */
  keys?: readonly string[];
}

export interface LoadResult {
  /** Correctly answered requests. */
  answered: number;
  requestsPerSecond: number;
  /** All other requests, by error. */
  errors: Record<string, number>;
  latencyMs: { p50: number; p95: number; p99: number };
  /** Until the first text; only for streams. */
  firstChunkMs: { p50: number; p99: number } | undefined;
  /** From leaving a stream to the first byte on the next connection. */
  resumedMs: { p50: number; p99: number } | undefined;
}
