import type { RoutingTable } from '../../domain/routing.ts';
import type { Logger } from '../../logging/logger.ts';
import type { RoutingRepository } from './routing-repository.ts';

/** Every process has to know a change within 1 s (docs/spec.md#administration). */
const READ_EVERY_MS = 500;

/** Lacks changes of the last half second; while MongoDB is away, keeps the last table read. */
export type RoutingCache = Awaited<ReturnType<typeof createRoutingCache>>;

export interface RoutingCacheDeps {
  repository: RoutingRepository;
  log: Logger;
  readEveryMs?: number;
}

/** Each left-out provider is logged once. */
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

/** Rejects if the first read fails. */
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
