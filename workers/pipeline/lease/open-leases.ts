import type { Lease } from '../stage.ts';
import type { LeaseOptions } from './lease.ts';

/** The leases of the requests that run in this process. */
export interface OpenLeases {
  open(options: LeaseOptions): Lease;
  /** Checks a request's lease at once; does nothing where the request does not run here. */
  check(requestId: string): Promise<void>;
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
  };
}
