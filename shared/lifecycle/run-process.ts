import { setFlagsFromString } from 'node:v8';

import { BUILD, ConfigError, adviceOnNames, loadConfig } from '../config/load-config.ts';
import type { ProcessKind } from '../config/load-config.ts';
import type { Config } from '../config/settings.ts';
import { createLogger } from '../logging/logger.ts';
import type { Logger } from '../logging/logger.ts';
import { createCloser } from './closer.ts';
import type { Closer } from './closer.ts';
import type { Server } from 'node:http';

/** A supervisor signals all processes of a service, and npm passes that on. Signals this close are one. */
const ONE_STOP_MS = 1_000;

/** Resolves once `server` accepts connections, or rejects with one sentence that says what to do. */
export function listen(server: Server, port: number, host: string, setting: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const inUse = cause.code === 'EADDRINUSE';
      const sentence = inUse
        ? `Port ${port} is in use; stop what uses it or set ${setting} to another port.`
        : `Port ${port} cannot be opened on ${host}; check ${setting === 'ADMIN_PORT' ? 'ADMIN_HOST' : 'HOST'} and ${setting}.`;
      reject(new Error(sentence, inUse ? undefined : { cause }));
    };
    server.once('error', onError);
    server.listen(port, host, () => {
      server.off('error', onError);
      resolve();
    });
  });
}

export interface ProcessOptions {
  kind: ProcessKind;
  name: string;
  env: Record<string, string | undefined>;
  /** Opens everything and registers its closing. */
  start: (config: Config, log: Logger, closer: Closer) => Promise<void>;
  /** Closing may take this many milliseconds; then the process ends with 1. */
  graceMs: (config: Config) => number;
}

/** A connection that failed on several addresses has no message of its own. */
function messageOf(error: Error): string {
  if (error.message !== '') return error.message;
  return error instanceof AggregateError ? error.errors.map(String).join('; ') : error.name;
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${messageOf(error.cause)})` : '';
  return `${messageOf(error)}${cause}`;
}

/** Warns where an ingress may open fewer files than it is to have connections. */
function adviceOnFiles(maxConnections: number): string[] {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files: { soft: number | 'unlimited' } } };
  const most = userLimits?.open_files.soft;
  // Node.js has raised the soft limit to the hard one.
  if (typeof most !== 'number' || most >= maxConnections) return [];
  const sentence = `The process may open ${most} files, fewer than MAX_CONNECTIONS (${maxConnections})`;
  return [`${sentence}: callers beyond that hang. Raise ulimit -n (LimitNOFILE=), or lower MAX_CONNECTIONS.`];
}

function parseConfig({ env, kind }: ProcessOptions): Config | undefined {
  try {
    return loadConfig(env, kind);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return undefined;
  }
}

function stopOnSignal(close: () => Promise<void>, log: Logger): () => boolean {
  let first: { signal: string; at: number } | undefined;
  async function stop(signal: string): Promise<void> {
    if (first !== undefined) {
      if (signal === first.signal && performance.now() - first.at < ONE_STOP_MS) return;
      log.warn('A second signal: the process ends at once.', { signal });
      process.exit(1);
    }
    first = { signal, at: performance.now() };
    log.info('The process is stopping.', { signal });
    await close();
    log.info('The process has stopped.');
    process.exit(0);
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  return () => first !== undefined;
}

/**
 * The life of a process: checks the settings, starts, and closes on SIGTERM or SIGINT within its grace. A second signal
 * ends it at once, unless it echoes the first. A failed start prints one sentence and exits with code 1.
 */
export async function runProcess(options: ProcessOptions): Promise<void> {
  // Sharing so short a task among threads costs more than it saves (docs/benchmarks/performance-log.md).
  setFlagsFromString('--no-parallel-scavenge');
  const config = parseConfig(options);
  if (config === undefined) {
    process.exitCode = 1;
    return;
  }
  const log = createLogger(options.name, config.process.logLevel);
  log.info('Parley starts.', BUILD);
  const files = options.kind === 'api' ? adviceOnFiles(config.http.maxConnections) : [];
  for (const advice of [...adviceOnNames(options.env), ...files]) log.warn(advice);
  const closer = createCloser((step, error) => {
    log.warn(`Closing ${step} failed.`, { error });
  });

  const graceMs = options.graceMs(config);
  /** Closing waits for stores that may not answer. */
  async function closeWithinGrace(): Promise<void> {
    setTimeout(() => {
      log.error('The process did not stop within its grace.');
      process.exit(1);
    }, graceMs).unref();
    await closer.close();
  }
  const isStopping = stopOnSignal(closeWithinGrace, log);
  process.on('unhandledRejection', (error) => {
    log.error('A promise was rejected and nobody listened.', { bug: error });
  });

  try {
    await options.start(config, log, closer);
  } catch (error) {
    // A signal came meanwhile and closed what the start was using.
    if (isStopping()) return;
    log.debug('The process could not start.', { error });
    process.stderr.write(`${sentenceOf(error)}\n`);
    await closeWithinGrace();
    process.exit(1);
  }
}
