import type { Lease } from '../stage.ts';
import type { LeaseOptions } from './lease.ts';

/** The leases of the requests that run in this process. */
export interface OpenLeases {
  open(options: LeaseOptions): Lease;
  /** Has a request learn at once what has changed; nothing where it does not run here. */
  check(requestId: string): Promise<void>;
  /** Has all of them say at once that they run. */
  checkAll(): Promise<unknown>;
}

export function createOpenLeases(create: (options: LeaseOptions) => Lease): OpenLeases {
  const running = new Map<string, Lease>();
  return {
    open(options) {
      const { requestId } = options.ref;
      const lease = create(options);
      const open: Lease = {
        ...lease,
        release() {
          // A later attempt at the same request may have taken its place.
          if (running.get(requestId) === open) running.delete(requestId);
          lease.release();
        },
      };
      running.set(requestId, open);
      return open;
    },
    check: (requestId) => running.get(requestId)?.check() ?? Promise.resolve(),
    checkAll: () => Promise.allSettled([...running.values()].map((lease) => lease.check())),
  };
}
