import { setTimeout as pause } from 'node:timers/promises';

import pRetry from 'p-retry';

import { errorCodeOf } from '../../shared/http/resolve-name.ts';

export interface RetryPolicy {
  /** Further tries after the first. */
  retries: number;
  /** Asked once for each failure, except the last. */
  mayRetry: (error: Error) => boolean;
  /** A wait that the server asked for, in addition to the back-off; milliseconds. */
  retryAfterMs: (error: Error) => number;
  onRetry?: (error: Error, attempt: number) => void;
  signal: AbortSignal;
}

/** Two tries later, at most 0.9 s, the next target is asked: a failover takes less than a second. */
const FIRST_BACKOFF_MS = 150;
const BACKOFF_MAX_MS = 5_000;

/** Runs `attempt` until it succeeds, with exponential back-off and jitter. Rejects with the last error, or the abort's reason. */
export function withRetries<T>(attempt: (number: number) => Promise<T>, policy: RetryPolicy): Promise<T> {
  return pRetry(attempt, {
    retries: policy.retries,
    minTimeout: FIRST_BACKOFF_MS,
    maxTimeout: BACKOFF_MAX_MS,
    randomize: true,
    signal: policy.signal,
    shouldRetry: async ({ error, attemptNumber }) => {
      if (!policy.mayRetry(error)) return false;
      policy.onRetry?.(error, attemptNumber);
      const wait = policy.retryAfterMs(error);
      // Where the signal ends the wait, p-retry rejects with the signal's own reason.
      if (wait > 0) await pause(wait, undefined, { signal: policy.signal }).catch(() => undefined);
      return true;
    },
  });
}

export interface HttpHead {
  status: number;
  /** Undefined where the server sent none, or several. */
  header(name: string): string | undefined;
  /** Ends the call, which rejects with the reason, and its connection. */
  close(reason: Error): void;
}

/**
 * Takes a body part by part, while it arrives. Nothing is kept for a slow reader: the next part is read from the socket
 * when `take` has returned. What it throws ends the call and its connection.
 */
export type TakePart = (part: Buffer) => void;

/** The target of calls, with the headers that they share. Made once for many calls. */
export type HttpEndpoint = ReturnType<typeof createEndpoint>;

/** Throws where `url` is no URL. */
export function createEndpoint(url: string, headers: Readonly<Record<string, string>>) {
  const { origin, pathname, search } = new URL(url);
  return {
    origin,
    /** With the query. */
    path: pathname + search,
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/plain, */*',
      // Without it any coding is welcome (RFC 9110 section 12.5.3).
      'Accept-Encoding': 'identity',
      ...headers,
    },
  };
}

/** Calls back when reading may continue. */
export type ScheduleRead = (act: () => void) => void;

export interface HttpCall {
  endpoint: HttpEndpoint;
  /** This call's own, beside those of the endpoint. */
  headers?: Readonly<Record<string, string>>;
  body: string;
  signal: AbortSignal;
  /** Says after each part of the body when to read the next one. Undefined: as soon as it comes. */
  scheduleRead?: (() => ScheduleRead | undefined) | undefined;
  /** Hears of the answer's status and headers, and returns what takes its body. What it throws ends the call. */
  onHead: (head: HttpHead) => TakePart;
}

/** The connection failed: nobody answered, or the answer was cut. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError';
  readonly code: string;
  /** The provider may have begun to work. */
  readonly wasSent: boolean;

  constructor(cause: unknown, wasSent: boolean) {
    const code = errorCodeOf(cause);
    // Not the fault's own text, which may be anything.
    super(`The connection failed (${code === '' ? 'no code' : code})`, { cause });
    this.code = code;
    this.wasSent = wasSent;
  }
}

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
}

const BYTE_ORDER_MARK = 0xfeff;

export function collectBody(maxBytes: number) {
  const parts: Buffer[] = [];
  let size = 0;
  const bytes = () => (parts.length === 1 ? (parts[0] ?? Buffer.alloc(0)) : Buffer.concat(parts));
  return {
    take(part: Buffer): void {
      size += part.length;
      if (size > maxBytes) throw new BodyTooLargeError(`The body exceeds ${maxBytes} bytes`);
      parts.push(part);
    },
    bytes,
    /** The same as UTF-8, without a byte order mark. */
    text(): string {
      const text = bytes().toString('utf8');
      return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
    },
  };
}
