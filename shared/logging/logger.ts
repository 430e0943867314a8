import { hostname } from 'node:os';
import { Writable } from 'node:stream';

import winston from 'winston';
import type { BreakerChange } from '../domain/breaker.ts';

/** One line for each change of a breaker in the fleet, with all that an alarm needs. */
export function logBreakerChange(log: Logger, { provider, from, to, reason, retryAt, errors }: BreakerChange): void {
  const fields = { provider, from, to, reason, errors, ...(retryAt === null ? {} : { retryAt }) };
  if (to === 'open') log.warn('The circuit breaker of a provider has opened.', fields);
  else log.info('The circuit breaker of a provider has changed.', fields);
}

/** All fields of a log line; no key, secret or conversation text is among them. Others do not compile. */
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
  claim?: number;
  /** Failed calls of one target. */
  calls?: number;
  durationMs?: number;
  /** From acceptance until a worker began, and until the first text; milliseconds. */
  waitMs?: number;
  firstTokenMs?: number;
  endpoint?: string;
  /** Provider calls, and targets that were skipped. */
  attempts?: number;
  /** Charged. */
  credits?: number;
  promptTokens?: number;
  completionTokens?: number;
  finishReason?: string;
  reason?: string;
  from?: string;
  to?: string;
  /** Milliseconds since the epoch. */
  retryAt?: number;
  /** Counts by reason; each reason is a word of our own. */
  errors?: Record<string, number>;
  categories?: string[];
  count?: number;
  path?: string;
  /** The refused caller, for whoever keeps it out. */
  address?: string;
  /** Differences that reconciliation found, by name. */
  drift?: Readonly<Record<string, number>>;
  signal?: string;
  /** Calls that were answered 503 while a store was away. */
  refused?: number;
  error?: unknown;
  /** An error that nobody expected: its stack is written at every level, because nothing else leads to the fault. */
  bug?: unknown;
}

export type Logger = ReturnType<typeof createLogger>;

/** MongoDB's word for a violated unique index names the values, and among them may be an entity. */
const DUPLICATE_KEY = /dup key: .*/g;

/** Name and message of an error and its causes, nothing else: libraries attach whole requests. */
export function describeError(error: unknown, withStack: boolean, depth = 0): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : typeof error;
  const hasCause = error.cause !== undefined && depth <= 3;
  const cause = hasCause ? `\ncaused by ${describeError(error.cause, withStack, depth + 1)}` : '';
  const own = withStack && error.stack !== undefined ? error.stack : `${error.name}: ${error.message}`;
  return own.replaceAll(DUPLICATE_KEY, 'dup key') + cause;
}

/** A store whose loss is one line of the log, and its return another. */
export interface WatchedStore {
  name: string;
  /** A call failed because the store is away or cannot serve. */
  isFault: (error: unknown) => boolean;
  ping: () => Promise<unknown>;
}

/** Asks a store that is away this often whether it is back. */
const LOOK_MS = 1_000;

interface Outage {
  since: number;
  lastFaultAt: number;
  lines: number;
  refused: number;
}

function isBehind(error: unknown, isFault: WatchedStore['isFault']): boolean {
  for (let each = error, depth = 0; each instanceof Error && depth <= 3; each = each.cause, depth += 1)
    if (isFault(each)) return true;
  return false;
}

/**
 * Counts the warnings of a store's outage. The store is back once it answers and no call of the last second has failed:
 * one that answers and takes no writes is away as well.
 */
function createOutageCount({ name, isFault, ping }: WatchedStore, log: Record<'error' | 'info', WriteLine>) {
  let outage: Outage | undefined;
  let isAsking = false;
  let timer: NodeJS.Timeout | undefined;

  async function look(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    const answers = await ping().then(
      () => true,
      () => false,
    );
    isAsking = false;
    if (!answers || outage === undefined || performance.now() - outage.lastFaultAt < LOOK_MS) return;
    const { since, lines: count, refused } = outage;
    stop();
    log.info(`${name} answers again.`, { durationMs: Math.round(performance.now() - since), count, refused });
  }

  function stop(): void {
    clearInterval(timer);
    outage = undefined;
  }

  return {
    stop,
    /** True: the line of a fault is counted instead of written. The first fault begins the outage. */
    counts({ error, status }: LogFields): boolean {
      if (!isBehind(error, isFault)) return false;
      const now = performance.now();
      if (outage === undefined) {
        outage = { since: now, lastFaultAt: now, lines: 0, refused: 0 };
        timer = setInterval(() => void look(), LOOK_MS).unref();
        log.error(`${name} does not answer.`, { error });
      }
      outage.lastFaultAt = now;
      outage.lines += 1;
      if (status === 503) outage.refused += 1;
      return true;
    },
  };
}

type WriteLine = (message: string, fields?: LogFields) => void;

/** A busy process writes a line for each request, and each write is a system call that waits. */
const GATHER_MS = 20;

/** `write` takes the lines before it returns. */
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

/** Unique among the processes of all machines. */
export const INSTANCE = `${hostname()}/${process.pid}`;

const toStdout = (lines: string) => process.stdout.write(lines);

/**
 * One JSON object a line. Warnings and errors are written at once, with all lines before them; other lines within 20
 * ms, and when the process ends. Only a killed process loses those. Stacks, and warnings about a store that is away,
 * are written at the level `debug`.
 */
export function createLogger(processName: string, level: string, write: (lines: string) => void = toStdout) {
  const { stream, flush } = gatherLines(write);
  process.once('exit', flush);
  const logger = winston.createLogger({
    level,
    format: winston.format.printf((info) => JSON.stringify({ timestamp: new Date().toISOString(), ...info })),
    defaultMeta: { process: processName, instance: INSTANCE },
    transports: [new winston.transports.Stream({ stream, eol: '\n' })],
  });
  const withStack = level === 'debug';
  const logAt =
    (at: 'error' | 'warn' | 'info' | 'debug'): WriteLine =>
    (message, fields = {}) => {
      const { error, bug, ...rest } = fields;
      const said = bug === undefined ? error : bug;
      const text = said === undefined ? {} : { error: describeError(said, withStack || bug !== undefined) };
      logger.log({ level: at, message, ...rest, ...text });
      if (at === 'error' || at === 'warn') flush();
    };
  const log = { error: logAt('error'), warn: logAt('warn'), info: logAt('info'), debug: logAt('debug') };
  const outages = new Set<ReturnType<typeof createOutageCount>>();
  return {
    ...log,
    warn: ((message, fields = {}) => {
      const isCounted = fields.error !== undefined && [...outages].some((outage) => outage.counts(fields));
      log[isCounted ? 'debug' : 'warn'](message, fields);
    }) as WriteLine,
    /** Counts warnings that the store causes by being away. Returns what ends that. */
    watchStore(store: WatchedStore): () => void {
      const outage = createOutageCount(store, log);
      outages.add(outage);
      return () => {
        outage.stop();
        outages.delete(outage);
      };
    },
  };
}
