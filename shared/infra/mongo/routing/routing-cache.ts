import type { RoutingTable } from '../../../domain/routing/routing.ts';
import type { Logger } from '../../logging/logger.ts';
import type { RoutingRepository } from './routing-repository.ts';

/** A change has to reach every process within 1 s (docs/spec/contract.md section 7). */
const REFRESH_MS = 500;

/** The routing table as of at most half a second ago; the last one read while MongoDB is away. */
export interface RoutingCache {
  current(): RoutingTable;
  stop(): void;
}

export async function createRoutingCache(repository: RoutingRepository, log: Logger): Promise<RoutingCache> {
  let reported: ReadonlySet<string> = new Set();
  let table = report(await repository.load());
  let failing = false;
  let stopped = false;
  let timer: NodeJS.Timeout;

  /** Logs each provider that is left out once, however often it is read. */
  function report(read: RoutingTable): RoutingTable {
    for (const [provider, error] of read.unreadable) {
      if (reported.has(provider)) continue;
      log.error('The stored API key of a provider cannot be decrypted; the provider is left out until it can.', {
        provider,
        error,
      });
    }
    for (const provider of reported) {
      if (!read.unreadable.has(provider)) log.info('A provider that was left out is no longer.', { provider });
    }
    reported = new Set(read.unreadable.keys());
    return read;
  }

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
    }, REFRESH_MS);
    timer.unref();
  }

  schedule();
  return {
    current: () => table,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
