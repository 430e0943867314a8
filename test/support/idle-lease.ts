import type { DeliveryRef } from '../../shared/requests/delivery.ts';
import type { Lease } from '../../workers/pipeline/stage.ts';

/** The first delivery of a request, for a stage without stores. */
export const FIRST_DELIVERY = {
  shard: 0,
  requestId: 'req_1',
  tenantId: 'ten_1',
  keyId: 'key_1',
  queue: 'interactive',
  fence: 1,
} as const satisfies DeliveryRef;

/** A lease that lasts and grants everything. */
export function idleLease(stop: Lease['stop'] = () => undefined): Lease {
  return {
    signal: new AbortController().signal,
    need: () => undefined,
    cover: () => Promise.resolve(true),
    granted: () => Infinity,
    grant: () => Promise.resolve(),
    payable: (usage) => Promise.resolve(usage),
    exhaust: () => undefined,
    check: () => Promise.resolve(),
    stop,
    release: () => undefined,
  };
}
