import { ADDRESS_FAILURES_PER_MINUTE } from '../../shared/contracts/tenant-fields.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { RequestFigures } from '../../shared/requests/admission-store.ts';
import { putNewest } from '../../shared/domain/bounded-map.ts';

const MINUTE_MS = 60_000;
/** Look-ups of unknown keys that an address may have under way at a time, and that may wait behind them. */
const CONCURRENT = 4;
const WAITING_MAX = 1_000;
/** An address over its limit gets one look-up per this time, because its next key may be a valid one. */
const TRICKLE_MS = 1_000;
const ADDRESSES_MAX = 20_000;

interface HeldAddress extends RequestFigures {
  retryAfterMs: number;
}

export function tooManyFailures(retryAfterMs: number): ServiceError {
  return new ServiceError(
    'rpm_exceeded',
    `More than ${ADDRESS_FAILURES_PER_MINUTE} failed authentications per minute came from this address; wait as Retry-After says.`,
    { retryAfterSeconds: toRetrySeconds(retryAfterMs) },
  );
}

interface Address {
  running: number;
  waiting: (() => void)[];
  /** Times of the look-ups that found nothing, within the last minute. */
  failedAt: number[];
  lastTryAt: number;
  /** Redis's last report: until when the address is over its limit, and when its window will be empty. */
  heldUntil: number;
  emptyAt: number;
}

export type AddressGuard = ReturnType<typeof createAddressGuard>;

function assertMayTry(address: Address, now: number): void {
  const { failedAt } = address;
  while ((failedAt[0] ?? now) <= now - MINUTE_MS) failedAt.shift();
  const oldest = failedAt.length < ADDRESS_FAILURES_PER_MINUTE ? undefined : failedAt[0];
  const waitMs = Math.max(address.heldUntil - now, oldest === undefined ? 0 : oldest + MINUTE_MS - now);
  if (waitMs <= 0) return;
  if (now - address.lastTryAt < TRICKLE_MS) throw tooManyFailures(waitMs);
  address.lastTryAt = now;
}

function leave(address: Address): void {
  const next = address.waiting.shift();
  if (next === undefined) address.running -= 1;
  else next();
}

async function enter(address: Address): Promise<void> {
  if (address.running < CONCURRENT) {
    address.running += 1;
    return;
  }
  if (address.waiting.length >= WAITING_MAX) {
    throw new ServiceError('model_unavailable', 'Too many keys of this address are being checked; try again shortly.', {
      retryAfterSeconds: 1,
    });
  }
  await new Promise<void>((resolve) => address.waiting.push(resolve));
}

/**
 * Keeps floods of invented keys away from the stores: answers an address over its limit from memory, except for one
 * look-up per second. Keys that this ingress knows skip this guard.
 */
export function createAddressGuard(clock: Clock) {
  const addresses = new Map<string, Address>();

  function addressOf(name: string): Address {
    const known = addresses.get(name);
    if (known !== undefined) return known;
    const fresh = { running: 0, waiting: [], failedAt: [], lastTryAt: -Infinity, heldUntil: 0, emptyAt: 0 };
    putNewest(addresses, name, fresh, ADDRESSES_MAX);
    return fresh;
  }

  return {
    /** Looks up an unknown key. Throws `rpm_exceeded` if too many keys of the address were unknown. */
    async lookUp<T>(name: string, find: () => Promise<T | undefined>): Promise<T | undefined> {
      const address = addressOf(name);
      await enter(address);
      try {
        // The look-ups ahead of this one may have used up the limit.
        assertMayTry(address, clock.now());
        const found = await find();
        if (found === undefined) address.failedAt.push(clock.now());
        return found;
      } finally {
        leave(address);
      }
    },

    hold(name: string, { requestsResetMs, retryAfterMs }: Omit<HeldAddress, 'requests'>): void {
      const now = clock.now();
      Object.assign(addressOf(name), { heldUntil: now + retryAfterMs, emptyAt: now + requestsResetMs });
    },

    /** Undefined: ask Redis. */
    heldOf(name: string): HeldAddress | undefined {
      const now = clock.now();
      const address = addresses.get(name);
      if (address === undefined || address.heldUntil <= now) return undefined;
      const { heldUntil, emptyAt } = address;
      return { requests: ADDRESS_FAILURES_PER_MINUTE, requestsResetMs: emptyAt - now, retryAfterMs: heldUntil - now };
    },
  };
}
