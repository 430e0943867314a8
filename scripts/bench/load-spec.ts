/** What crosses between the benchmark and its load generator. */

export type Mode = 'complete' | 'stream';

export interface LoadSpec {
  /** The whole URL that every request is sent to. */
  url: string;
  headers: Record<string, string>;
  /** Clients take them in turn and keep theirs: one entity has one request at a time. */
  bodies: readonly string[];
  mode: Mode;
  /** Each has a connection of its own and sends its next request when it has read the answer to the last. */
  clients: number;
  /** When nobody sends any more: after a time or a number of requests. */
  until: { seconds: number } | { requests: number };
  /** After this many events each stream is cut, and resumed at `url` followed by its id. */
  resume?: { url: string; afterEvents: number };
  /** Keys that clients use in turn, in place of the one in `headers`: each may resume only some streams a minute. */
  keys?: readonly string[];
}

export interface LoadResult {
  /** Answered as they should be. */
  answered: number;
  requestsPerSecond: number;
  /** Everything else, by what was wrong. */
  errors: Record<string, number>;
  latencyMs: { p50: number; p95: number; p99: number };
  /** Until the first text; for streams only. */
  firstChunkMs: { p50: number; p99: number } | undefined;
  /** From leaving a stream to its first byte on the next connection. */
  resumedMs: { p50: number; p99: number } | undefined;
}
