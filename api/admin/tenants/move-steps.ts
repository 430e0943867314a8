import { setTimeout as pause } from 'node:timers/promises';

import type { Logger } from '../../../shared/logging/logger.ts';
import type { AccountRepository } from '../../../shared/mongo/accounts/account-repository.ts';
import type { KeyRepository } from '../../../shared/mongo/tenants/key-repository.ts';
import type { TenantMove, TenantRepository, TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { TenantMoves } from '../../../shared/mongo/administration/tenant-moves.ts';
import type { AccountStore } from '../../../shared/redis/stores/account-store.ts';
import type { AccessFlags } from '../../../shared/redis/stores/access-flags.ts';
import { movedMark, movingMark, Overtaken } from '../../../shared/requests/tenant-move.ts';
import type { MoveMarks, TenantState } from '../../../shared/requests/tenant-move.ts';
import type { AcceptanceClock } from '../../../shared/requests/record-store.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { findTenant } from '../../resources/keys/key-changes.ts';
import { CLOCKS_APART_MS } from '../../../shared/domain/request-times.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';

export interface MoveChecksDeps {
  state: TenantState;
  moves: TenantMoves;
  acceptanceClock: AcceptanceClock;
}

type MoveChecks = ReturnType<typeof createMoveChecks>;

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

    /** Waits until the new shard's clock is past the old one's closing; throws `conflict` if off by over 1 s. */
    async waitForClock({ from, to }: TenantMove): Promise<void> {
      // The times of limits and the order of acceptance move along, and the old server's clock gave them.
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

export interface MoveStepsDeps extends ApplyStatusDeps {
  checks: MoveChecks;
  moves: TenantMoves;
  marks: MoveMarks;
  state: TenantState;
  keys: KeyRepository;
  accounts: AccountRepository;
  accountStore: AccountStore;
  accessFlags: AccessFlags;
  clock: Clock;
  log: Logger;
}

/** Well below the time after which a move counts as abandoned (move-tenant.ts). */
const RENEW_MS = 3_000;
/** Twice as long as the reader of an answer may stall (api/relay/answer.ts). */
const LINGER_MS = 60_000;

/** Returns a function that, every few seconds, records that this process is still moving the tenant. */
function holdOf({ clock, moves }: MoveStepsDeps, tenantId: string, move: TenantMove): (when?: 'now') => Promise<void> {
  let heardAt = clock.now();
  return async (when) => {
    const now = clock.now();
    if (when === undefined && now - heardAt < RENEW_MS) return;
    if (!(await moves.renew(tenantId, move, now))) throw new Overtaken();
    heardAt = now;
  };
}

async function finishMove(deps: MoveStepsDeps, tenantId: string, move: TenantMove): Promise<TenantRow> {
  const { keys, moves, accessFlags, accounts, accountStore, marks, tenants, state, log } = deps;
  const { from, to, token } = move;
  const keyIds = await keys.ids(tenantId);
  await moves.takeAlong(tenantId, move);
  // The tenant's shard is looked up after a key's flag was set, so the flag is set on the new shard, or copied here.
  await accessFlags.copy(from, to, await keys.flags(tenantId));
  const book = await accounts.read(tenantId);
  if (book !== undefined) await accountStore.publishBalance(to, tenantId, book);
  const keepHold = holdOf(deps, tenantId, move);
  // If another process has ended the move, the tenant may already be back.
  await keepHold('now');
  const hasLeft = await marks.leave(from, tenantId, movingMark(token), to);
  // Redis may have come back without the mark.
  if (!hasLeft && (await marks.find(from, tenantId)) === undefined) await marks.leave(from, tenantId, '', to);
  await marks.take(to, tenantId, movingMark(token));
  await applyStatus(deps, await findTenant(tenants, tenantId));
  await accessFlags.announce(tenantId);
  await keepHold('now');
  await state.clear(from, { tenantId, keyIds }, movedMark(to), { lingerMs: LINGER_MS, onPage: keepHold });
  await moves.end(tenantId, move, to);
  log.info('A tenant was moved to another shard.', { tenantId, shard: to });
  return findTenant(tenants, tenantId);
}

async function giveUpMove(deps: MoveStepsDeps, tenantId: string, move: TenantMove): Promise<boolean> {
  const { moves, marks, tenants, state, keys } = deps;
  const { from, to, token } = move;
  // Ending the move comes first, because from then on the process that began it can do nothing more.
  if (!(await moves.end(tenantId, move, from))) return false;
  await marks.take(from, tenantId, movingMark(token));
  await applyStatus(deps, await findTenant(tenants, tenantId));
  if (await marks.leave(to, tenantId, movingMark(token), from))
    await state.clear(to, { tenantId, keyIds: await keys.ids(tenantId) }, movedMark(from), { lingerMs: 0 });
  return true;
}

/** A move has two halves, and the tenant's row shows which is under way: `carry` ends by naming the new shard there. */
export function createMoveSteps(deps: MoveStepsDeps) {
  const { checks, moves, marks, state, keys } = deps;

  return {
    /** Closes both shards for the tenant and copies its data in Redis. Rejects with `Overtaken` if the move is over. */
    async carry(tenantId: string, move: TenantMove): Promise<void> {
      const { from, to, token } = move;
      const owner = { tenantId, keyIds: await keys.ids(tenantId) };
      const mark = movingMark(token);
      const keepHold = holdOf(deps, tenantId, move);
      // Clears what an earlier stay has left behind, while the tenant is still served on its old shard.
      await marks.close(to, tenantId, token);
      // Another process may have taken over before the mark was set; the mark would then be in its way.
      await keepHold('now');
      await state.clear(to, owner, mark, { lingerMs: 0, onPage: keepHold });
      await marks.close(from, tenantId, token);
      await keepHold('now');
      await checks.assertIdle(from, tenantId);
      await checks.waitForClock(move);
      await state.copy(move, owner, mark, keepHold);
      // If Redis came back without the mark, it has admitted requests meanwhile.
      if (!(await marks.isClosed(from, tenantId, token))) throw new Overtaken();
      if (!(await moves.arrive(tenantId, move))) throw new Overtaken();
    },

    /** The second half, once the row names the new shard. Safe to repeat; throws `Overtaken` if the move is over. */
    finish: (tenantId: string, move: TenantMove): Promise<TenantRow> => finishMove(deps, tenantId, move),

    /** Leaves the tenant on its old shard. False: it has already arrived, or another process is moving it. */
    giveUp: (tenantId: string, move: TenantMove): Promise<boolean> => giveUpMove(deps, tenantId, move),
  };
}

export interface ApplyStatusDeps {
  tenants: TenantRepository;
  accessFlags: AccessFlags;
}

/**
 * Copies the status of the tenant's row to Redis. Reads the row again after each write, so that simultaneous
 * suspensions, reactivations and moves all end with the final row's flag, on its shard.
 */
export async function applyStatus({ tenants, accessFlags }: ApplyStatusDeps, tenant: TenantRow): Promise<TenantRow> {
  let applied = tenant;
  for (;;) {
    if (applied.status === 'suspended') await accessFlags.block(applied.shard, applied._id);
    else await accessFlags.unblock(applied.shard, applied._id);
    const latest = (await tenants.find(applied._id)) ?? applied;
    if (latest.status === applied.status && latest.shard === applied.shard) return latest;
    applied = latest;
  }
}
