/** What crosses between the benchmark and its load generator. */

export type Mode = 'complete' | 'stream';

export interface LoadSpec {
  /** The whole URL that every request is sent to. */
  url: string;
  headers: Record<string, string>;
  body: string;
  mode: Mode;
  /** Each has a connection of its own and sends its next request when it has read the answer to the last. */
  clients: number;
  /** When nobody sends any more: after a time or a number of requests. */
  until: { seconds: number } | { requests: number };
}

export interface LoadResult {
  /** Answered as they should be. */
  answered: number;
  requestsPerSecond: number;
  /** Everything else, by what was wrong. */
  errors: Record<string, number>;
  latencyMs: { p50: number; p95: number; p99: number };
  /** Until the first byte of the body; for streams only. */
  firstChunkMs: { p50: number } | undefined;
}
