import type { Lease } from '../stage.ts';
import type { LeaseOptions } from './lease.ts';

/** The leases of the requests that run in this process. */
export interface OpenLeases {
  open(options: LeaseOptions): Lease;
  /** Checks a request's lease at once; does nothing where the request does not run here. */
  check(requestId: string): Promise<void>;
  /** A request was cancelled. If it runs here it is checked at once; if this worker is about to start it, it is checked then. */
  hearCancel(requestId: string): Promise<void>;
  /** Checks all leases of some shards at once, so that Redis knows what runs here. */
  checkAll(isOf: (shard: number) => boolean): Promise<unknown>;
}

/** By then a job that was taken has started, or was put back (shared/infra/queue/chat-backend.ts). */
const START_MS = 5_000;
/** Every worker of a shard hears of all cancelled requests of the shard. */
const CANCELLED_MAX = 10_000;

/** Recently cancelled requests that do not run here. One of them may be about to start, with a claim made before. */
function createCancelled() {
  const heardAt = new Map<string, number>();
  const isRecent = (at: number) => performance.now() - at < START_MS;
  return {
    add(requestId: string): void {
      heardAt.delete(requestId);
      heardAt.set(requestId, performance.now());
      for (const [oldest, at] of heardAt) {
        if (isRecent(at) && heardAt.size <= CANCELLED_MAX) break;
        heardAt.delete(oldest);
      }
    },
    take(requestId: string): boolean {
      const at = heardAt.get(requestId);
      return at !== undefined && heardAt.delete(requestId) && isRecent(at);
    },
  };
}

interface Place {
  shard: number;
  lease: Lease | undefined;
}

export function createOpenLeases(create: (options: LeaseOptions) => Lease): OpenLeases {
  /**
   * In boxes that are emptied when their requests end: a table that a map has outgrown keeps its values alive until V8's
   * next full collection.
   */
  const running = new Map<string, Place>();
  const cancelled = createCancelled();
  return {
    open(options) {
      const { requestId, shard } = options.ref;
      const lease = create(options);
      // Redis knows whether this run was cancelled: an administrator may have started the request anew.
      if (cancelled.take(requestId)) lease.check().catch(() => undefined);
      const place: Place = { shard, lease };
      running.set(requestId, place);
      return {
        ...lease,
        release() {
          // A later delivery of the same request may be in its place.
          if (running.get(requestId) === place) running.delete(requestId);
          place.lease = undefined;
          lease.release();
        },
      };
    },
    check: (requestId) => running.get(requestId)?.lease?.check() ?? Promise.resolve(),
    async hearCancel(requestId) {
      const lease = running.get(requestId)?.lease;
      if (lease === undefined) cancelled.add(requestId);
      else await lease.check();
    },
    checkAll(isOf) {
      const places = [...running.values()].filter(({ shard }) => isOf(shard));
      return Promise.allSettled(places.map(({ lease }) => lease?.check() ?? Promise.resolve()));
    },
  };
}
