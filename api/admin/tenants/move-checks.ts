import { setTimeout as pause } from 'node:timers/promises';

import { CLOCKS_APART_MS } from '../../../shared/domain/request-times.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { TenantMoves } from '../../../shared/mongo/administration/tenant-moves.ts';
import type { TenantMove } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { AcceptanceClock } from '../../../shared/requests/record-store.ts';
import type { TenantState } from '../../../shared/requests/tenant-move.ts';

export interface MoveChecksDeps {
  state: TenantState;
  moves: TenantMoves;
  acceptanceClock: AcceptanceClock;
}

/** The conditions for copying a tenant. */
export type MoveChecks = ReturnType<typeof createMoveChecks>;

const counted = (count: number, one: string, many: string) =>
  count === 0 ? [] : [count === 1 ? one : `${count} ${many}`];

export function createMoveChecks({ state, moves, acceptanceClock }: MoveChecksDeps) {
  return {
    /** Throws `conflict` that lists what is still under way. */
    async assertIdle(shard: number, tenantId: string): Promise<void> {
      const [work, tasks] = await Promise.all([state.openWork(shard, tenantId), moves.openTasks(tenantId)]);
      const under = [
        ...counted(work.requests, 'a request waits or runs', 'requests wait or run'),
        ...counted(tasks.batches, 'a batch has not ended', 'batches have not ended'),
        ...counted(work.unsettled, 'an ended request is not booked', 'ended requests are not booked'),
        ...counted(work.unpublished, 'an event is not published', 'events are not published'),
        ...counted(tasks.intents, 'a kept request has ended a moment ago', 'kept requests have ended a moment ago'),
        ...counted(tasks.jobs, 'an export or deletion has not ended', 'exports or deletions have not ended'),
      ];
      if (under.length === 0) return;
      throw new ServiceError('conflict', `The tenant is not idle: ${under.join(', ')}. Move it when that is over.`, {
        retryAfterSeconds: 10,
      });
    },

    /**
     * Waits until the new shard's clock has passed the time at which the old shard was closed. Throws `conflict` if the
     * two clocks differ by more than a second.
     */
    async waitForClock({ from, to }: TenantMove): Promise<void> {
      // The times of limits and the order of acceptance move with the tenant, and were taken from the old server's
      // clock.
      const before = await acceptanceClock.read(from);
      const there = await acceptanceClock.read(to);
      const after = await acceptanceClock.read(from);
      const behindMs = ((before + after) / 2 - there) / 1000;
      const unsureMs = (after - before) / 2000;
      if (Math.abs(behindMs) > CLOCKS_APART_MS + unsureMs) {
        throw new ServiceError(
          'conflict',
          `The clocks of the Redis servers of shards ${from} and ${to} differ by ${Math.round(Math.abs(behindMs))} ms; set them right (NTP) and try again.`,
        );
      }
      if (behindMs + unsureMs > 0) await pause(behindMs + unsureMs);
    },
  };
}
