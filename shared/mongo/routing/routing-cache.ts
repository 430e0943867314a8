import type { RoutingTable } from '../../domain/routing.ts';
import type { Logger } from '../../logging/logger.ts';
import type { RoutingRepository } from './routing-repository.ts';

/** Milliseconds between two looks whether routes have changed; all of them are read at the first look after `readMs`. */
interface RoutingCacheTimes {
  lookMs: number;
  readMs: number;
}

/**
 * A change has to reach every process within 1 s (docs/spec.md#administration). All of the table is read now and then,
 * as a change may have left no mark: one by hand, or one whose process died
 * (docs/decisions/0010-circuit-breaker.md).
 */
const TIMES: RoutingCacheTimes = { lookMs: 500, readMs: 4_500 };

/** The routing table, but for marked changes of the last half second; the last one read while MongoDB is away. */
export type RoutingCache = Awaited<ReturnType<typeof createRoutingCache>>;

export interface RoutingCacheDeps {
  repository: RoutingRepository;
  /** Answers another text once routes have changed. Where it rejects, the table is read to find out. */
  readMark(): Promise<string>;
  log: Logger;
  times?: RoutingCacheTimes;
}

/** Rejects where the table cannot be read for the first time. */
export async function createRoutingCache(deps: RoutingCacheDeps) {
  const { repository, readMark, log, times = TIMES } = deps;
  let reported: ReadonlySet<string> = new Set();
  /** The mark under which the table was read, until it is read anew; undefined: nothing is known of it. */
  let markRead: string | undefined;
  let readAt = 0;
  let table = await read(await askMark());
  let failing = false;
  let stopped = false;
  let timer: NodeJS.Timeout;

  /** Logs nothing: Redis's connection says that it is away, and the table is as new as ever. */
  function askMark(): Promise<string | undefined> {
    return readMark().catch(() => undefined);
  }

  /** `mark` was read before: what is changed and marked meanwhile is seen by the next look. */
  async function read(mark: string | undefined): Promise<RoutingTable> {
    markRead = undefined;
    const loaded = report(await repository.load());
    markRead = mark;
    readAt = performance.now();
    return loaded;
  }

  /** Logs each provider that is left out once, however often it is read. */
  function report(loaded: RoutingTable): RoutingTable {
    for (const [provider, error] of loaded.unreadable) {
      if (reported.has(provider)) continue;
      log.error('The stored API key of a provider cannot be decrypted; the provider is left out until it can.', {
        provider,
        error,
      });
    }
    for (const provider of reported) {
      if (!loaded.unreadable.has(provider)) log.info('A provider that was left out is no longer.', { provider });
    }
    reported = new Set(loaded.unreadable.keys());
    return loaded;
  }

  async function refresh(): Promise<void> {
    const mark = await askMark();
    const isKnown = mark !== undefined && mark === markRead;
    if (stopped || (isKnown && performance.now() - readAt < times.readMs)) return;
    try {
      table = await read(mark);
      if (failing) log.info('The routing table can be read again.');
      failing = false;
    } catch (error) {
      if (!failing) log.warn('The routing table cannot be read; the last one stays in use.', { error });
      failing = true;
    }
  }

  function schedule(): void {
    timer = setTimeout(() => {
      void refresh().finally(() => {
        if (!stopped) schedule();
      });
    }, times.lookMs);
    timer.unref();
  }

  schedule();
  return {
    current: (): RoutingTable => table,
    stop(): void {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
