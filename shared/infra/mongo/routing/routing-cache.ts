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
  let table = await repository.load();
  let failing = false;
  let stopped = false;
  let timer: NodeJS.Timeout;

  async function refresh(): Promise<void> {
    try {
      table = await repository.load();
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
