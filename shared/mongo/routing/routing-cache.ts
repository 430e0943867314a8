import type { RoutingTable } from '../../domain/routing.ts';
import type { Logger } from '../../logging/logger.ts';
import type { RoutingRepository } from './routing-repository.ts';

/** A change has to reach every process within 1 s (docs/spec.md#administration). */
const READ_EVERY_MS = 500;

/** The routing table, but for changes of the last half second; the last one read while MongoDB is away. */
export type RoutingCache = Awaited<ReturnType<typeof createRoutingCache>>;

export interface RoutingCacheDeps {
  repository: RoutingRepository;
  log: Logger;
  readEveryMs?: number;
}

/** Logs each provider that is left out once, however often it is read. */
function createReport(log: Logger): (loaded: RoutingTable) => RoutingTable {
  let reported: ReadonlySet<string> = new Set();
  return (loaded) => {
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
  };
}

/** Rejects where the table cannot be read for the first time. */
export async function createRoutingCache(deps: RoutingCacheDeps) {
  const { repository, log, readEveryMs = READ_EVERY_MS } = deps;
  const report = createReport(log);
  let table = report(await repository.load());
  let failing = false;
  let stopped = false;
  let timer: NodeJS.Timeout;

  async function refresh(): Promise<void> {
    try {
      table = report(await repository.load());
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
    }, readEveryMs);
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
