import type { Request, Response } from 'express';

import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import type { AdminAccessStore } from '../../shared/infra/redis/administration/admin-access-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { putNewest } from '../admission/put-newest.ts';
import { addressBlockOf } from './address-block.ts';
import { contextOf } from './request-context.ts';

/** docs/spec.md#tokens: failed tokens of an address before it is kept out. */
export const ADMIN_FAILURES_PER_MINUTE = 10;
const MINUTE_MS = 60_000;

/** Keeps out addresses that guess administration tokens. */
export interface AdminFailures {
  /** Throws `rpm_exceeded` while the address is kept out, before its token is checked. */
  assertMayTry(req: Request): void;
  /** Counts a wrong token; throws `rpm_exceeded` if it was one too many. */
  count(req: Request, res: Response): Promise<void>;
}

export interface AdminFailuresDeps {
  store: Pick<AdminAccessStore, 'countFailure'>;
  clock: Clock;
  /** Called once each time an address gets kept out. */
  onKeptOut: (req: Request, res: Response) => Promise<void>;
}

/** More addresses than this at once are a flood, and Redis still counts them. */
const ADDRESSES_MAX = 10_000;

/**
 * All ingresses count together in Redis. Each one remembers the addresses that are kept out, so that a valid token
 * costs no look-up and works while Redis is unavailable; wrong tokens are then counted by each ingress for itself.
 */
export function createAdminFailures({ store, clock, onKeptOut }: AdminFailuresDeps): AdminFailures {
  const keptOut = new Map<string, number>();
  /** Counted here while Redis is unavailable: when each failed, within the last minute. */
  const failedAt = new Map<string, number[]>();
  const addressOf = (req: Request) => addressBlockOf(req.ip);

  function refusal(waitMs: number): ServiceError {
    return new ServiceError(
      'rpm_exceeded',
      `More than ${ADMIN_FAILURES_PER_MINUTE} wrong administrator tokens per minute came from this address; wait as Retry-After says.`,
      { retryAfterSeconds: toRetrySeconds(waitMs) },
    );
  }

  /** Undefined: the address may try again; else the time until it may, as the store has it. */
  function countHere(address: string): number | undefined {
    const now = clock.now();
    const recent = (failedAt.get(address) ?? []).filter((at) => at > now - MINUTE_MS);
    const [oldest = now] = recent;
    if (recent.length >= ADMIN_FAILURES_PER_MINUTE) return oldest + MINUTE_MS - now;
    putNewest(failedAt, address, [...recent, now], ADDRESSES_MAX);
    return undefined;
  }

  return {
    assertMayTry(req) {
      const address = addressOf(req);
      const waitMs = (keptOut.get(address) ?? 0) - clock.now();
      if (waitMs > 0) throw refusal(waitMs);
      keptOut.delete(address);
    },

    async count(req, res) {
      const address = addressOf(req);
      const waitMs = await store.countFailure(contextOf(res).requestId, address).catch(() => countHere(address));
      if (waitMs === undefined) return;
      if (keptOut.size >= ADDRESSES_MAX) keptOut.clear();
      keptOut.set(address, clock.now() + waitMs);
      await onKeptOut(req, res);
      throw refusal(waitMs);
    },
  };
}
