import { Writable } from 'node:stream';

import winston from 'winston';
import type { BreakerChange } from '../domain/breaker.ts';

/** One line for each change of a breaker in the fleet, with all that an alarm needs. */
export function logBreakerChange(log: Logger, { provider, from, to, reason, retryAt, errors }: BreakerChange): void {
  const fields = { provider, from, to, reason, errors, ...(retryAt === null ? {} : { retryAt }) };
  if (to === 'open') log.warn('The circuit breaker of a provider has opened.', fields);
  else log.info('The circuit breaker of a provider has changed.', fields);
}

/**
 * The only fields a log line may carry beside its message: keys, secrets and conversation text are never among them. An
 * unknown field does not compile.
 */
export interface LogFields {
  requestId?: string;
  tenantId?: string;
  keyId?: string;
  batchId?: string;
  provider?: string;
  model?: string;
  tier?: string;
  shard?: number;
  code?: string;
  version?: string;
  commit?: string;
  status?: number;
  /** The number of a request's delivery. */
  fence?: number;
  /** How often an export or a deletion has been taken. */
  claim?: number;
  /** How many calls of one target have failed. */
  calls?: number;
  durationMs?: number;
  promptTokens?: number;
  completionTokens?: number;
  finishReason?: string;
  reason?: string;
  from?: string;
  to?: string;
  /** Milliseconds since the epoch. */
  retryAt?: number;
  /** Counts by reason, each a word of our own. */
  errors?: Record<string, number>;
  categories?: string[];
  count?: number;
  path?: string;
  /** Of a caller that was refused, for whoever keeps it out. */
  address?: string;
  /** Differences that reconciliation found, by name. */
  drift?: Readonly<Record<string, number>>;
  signal?: string;
  error?: unknown;
}

export type Logger = ReturnType<typeof createLogger>;

/** MongoDB's word for a violated unique index names the values, and among them may be an entity. */
const DUPLICATE_KEY = /dup key: .*/g;

/** Name, message and stack of an error and its causes; nothing else of it, since libraries attach whole requests. */
export function describeError(error: unknown, depth = 0): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : typeof error;
  const cause = error.cause === undefined || depth > 3 ? '' : `\ncaused by ${describeError(error.cause, depth + 1)}`;
  return (error.stack ?? `${error.name}: ${error.message}`).replaceAll(DUPLICATE_KEY, 'dup key') + cause;
}

/** A process at work writes a line for each request, and each write is a system call that waits. */
const GATHER_MS = 20;

/** Gathers lines for `write`, which takes them before it returns. */
function gatherLines(write: (lines: string) => void): { stream: Writable; flush: () => void } {
  let lines = '';
  let timer: NodeJS.Timeout | undefined;
  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (lines === '') return;
    const gathered = lines;
    lines = '';
    write(gathered);
  }
  const stream = new Writable({
    decodeStrings: false,
    write(line, _encoding, done) {
      lines += String(line);
      timer ??= setTimeout(flush, GATHER_MS).unref();
      done();
    },
  });
  return { stream, flush };
}

const toStdout = (lines: string) => process.stdout.write(lines);

/**
 * One JSON object a line. Warnings and errors are written at once, with all that came before; other lines within 20 ms,
 * and when the process ends. Only a process that is killed loses those.
 */
export function createLogger(processName: string, level: string, write: (lines: string) => void = toStdout) {
  const { stream, flush } = gatherLines(write);
  process.once('exit', flush);
  const logger = winston.createLogger({
    level,
    format: winston.format.printf((info) => JSON.stringify({ timestamp: new Date().toISOString(), ...info })),
    defaultMeta: { process: processName },
    transports: [new winston.transports.Stream({ stream, eol: '\n' })],
  });
  const logAt =
    (at: 'error' | 'warn' | 'info' | 'debug') =>
    (message: string, fields: LogFields = {}) => {
      const { error, ...rest } = fields;
      logger.log({ level: at, message, ...rest, ...(error === undefined ? {} : { error: describeError(error) }) });
      if (at === 'error' || at === 'warn') flush();
    };
  return { error: logAt('error'), warn: logAt('warn'), info: logAt('info'), debug: logAt('debug') };
}
