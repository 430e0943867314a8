import { ADDRESS_FAILURES_PER_MINUTE } from '../../shared/domain/limits/defaults.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { WindowFigures } from '../../shared/infra/redis/requests/admission-store.ts';
import { putNewest } from './put-newest.ts';

const MINUTE_MS = 60_000;
/** Look-ups of unknown keys that an address has under way at a time, and that wait behind them. */
const CONCURRENT = 4;
const WAITING_MAX = 1_000;
/** An address over its limit has one look-up in this time: its next key may be a right one. */
const TRICKLE_MS = 1_000;
const ADDRESSES_MAX = 20_000;

/** The figures of an address over its limit. */
interface HeldAddress extends Pick<WindowFigures, 'requests' | 'requestsResetMs'> {
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
  /** Times of look-ups that found nothing, of the last minute. */
  failedAt: number[];
  lastTryAt: number;
  /** What Redis has said: until then the address is over its limit, and its window is empty. */
  heldUntil: number;
  emptyAt: number;
}

export interface AddressGuard {
  /** Looks a key up that is not known. Throws `rpm_exceeded` where too many keys of the address were unknown. */
  lookUp<T>(address: string, find: () => Promise<T | undefined>): Promise<T | undefined>;
  /** Remembers that Redis has found the address over its limit. */
  hold(address: string, figures: Pick<HeldAddress, 'requestsResetMs' | 'retryAfterMs'>): void;
  /** Undefined: ask Redis. */
  heldOf(address: string): HeldAddress | undefined;
}

/**
 * Keeps floods of invented keys away from the stores: an address over its limit is answered from memory, but for one
 * look-up a second. Keys that this ingress knows do not come by here.
 */
export function createAddressGuard(clock: Clock): AddressGuard {
  const addresses = new Map<string, Address>();

  function addressOf(name: string): Address {
    const known = addresses.get(name);
    if (known !== undefined) return known;
    const fresh = { running: 0, waiting: [], failedAt: [], lastTryAt: -Infinity, heldUntil: 0, emptyAt: 0 };
    putNewest(addresses, name, fresh, ADDRESSES_MAX);
    return fresh;
  }

  function assertMayTry(address: Address): void {
    const now = clock.now();
    const { failedAt } = address;
    while ((failedAt[0] ?? now) <= now - MINUTE_MS) failedAt.shift();
    const oldest = failedAt.length < ADDRESS_FAILURES_PER_MINUTE ? undefined : failedAt[0];
    const waitMs = Math.max(address.heldUntil - now, oldest === undefined ? 0 : oldest + MINUTE_MS - now);
    if (waitMs <= 0) return;
    if (now - address.lastTryAt < TRICKLE_MS) throw tooManyFailures(waitMs);
    address.lastTryAt = now;
  }

  /** Hands the place on. */
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
      throw new ServiceError(
        'model_unavailable',
        'Too many keys of this address are being checked; try again shortly.',
        {
          retryAfterSeconds: 1,
        },
      );
    }
    await new Promise<void>((resolve) => address.waiting.push(resolve));
  }

  return {
    async lookUp(name, find) {
      const address = addressOf(name);
      await enter(address);
      try {
        // Those before it in the line may have been unknown.
        assertMayTry(address);
        const found = await find();
        if (found === undefined) address.failedAt.push(clock.now());
        return found;
      } finally {
        leave(address);
      }
    },

    hold(name, { requestsResetMs, retryAfterMs }) {
      const now = clock.now();
      Object.assign(addressOf(name), { heldUntil: now + retryAfterMs, emptyAt: now + requestsResetMs });
    },

    heldOf(name) {
      const now = clock.now();
      const address = addresses.get(name);
      if (address === undefined || address.heldUntil <= now) return undefined;
      const { heldUntil, emptyAt } = address;
      return {
        requests: ADDRESS_FAILURES_PER_MINUTE,
        requestsResetMs: emptyAt - now,
        retryAfterMs: heldUntil - now,
      };
    },
  };
}
