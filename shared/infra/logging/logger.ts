import winston from 'winston';
import type { BreakerChange } from '../../domain/routing/breaker.ts';

/** One line for each change of a breaker in the fleet, with all that an alarm needs. */
export function logBreakerChange(log: Logger, { provider, from, to, reason, retryAt, errors }: BreakerChange): void {
  const fields = { provider, from, to, reason, errors, ...(retryAt === null ? {} : { retryAt }) };
  if (to === 'open') log.warn('The circuit breaker of a provider has opened.', fields);
  else log.info('The circuit breaker of a provider has changed.', fields);
}

/**
 * The only fields a log line may carry beside its message: keys, secrets and conversation text are never among them
 * (docs/architecture/facts.md section 10). An unknown field does not compile.
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
  status?: number;
  attempt?: number;
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

export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
}

/** MongoDB's word for a violated unique index names the values, and among them may be an entity. */
const DUPLICATE_KEY = /dup key: .*/g;

/** Name, message and stack of an error and its causes; nothing else of it, since libraries attach whole requests. */
export function describeError(error: unknown, depth = 0): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : typeof error;
  const cause = error.cause === undefined || depth > 3 ? '' : `\ncaused by ${describeError(error.cause, depth + 1)}`;
  return (error.stack ?? `${error.name}: ${error.message}`).replaceAll(DUPLICATE_KEY, 'dup key') + cause;
}

export function createLogger(processName: string, level: string): Logger {
  const logger = winston.createLogger({
    level,
    format: winston.format.combine(winston.format.timestamp(), winston.format.json()),
    defaultMeta: { process: processName },
    transports: [new winston.transports.Console({ stderrLevels: [] })],
  });
  const write =
    (at: 'error' | 'warn' | 'info' | 'debug') =>
    (message: string, fields: LogFields = {}) => {
      const { error, ...rest } = fields;
      logger.log({ level: at, message, ...rest, ...(error === undefined ? {} : { error: describeError(error) }) });
    };
  return { error: write('error'), warn: write('warn'), info: write('info'), debug: write('debug') };
}
