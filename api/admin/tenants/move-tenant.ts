import { setTimeout as pause } from 'node:timers/promises';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { AccountRepository } from '../../../shared/infra/mongo/accounts/account-repository.ts';
import type { KeyRepository } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { TenantMoves } from '../../../shared/infra/mongo/tenants/tenant-moves.ts';
import type { TenantMove, TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../../shared/infra/redis/accounts/account-store.ts';
import type { AcceptanceClock } from '../../../shared/infra/redis/requests/request-eraser.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';
import { movedMark, movingMark } from '../../../shared/infra/redis/tenants/move-marks.ts';
import type { MoveMarks } from '../../../shared/infra/redis/tenants/move-marks.ts';
import { Overtaken } from '../../../shared/infra/redis/tenants/tenant-state.ts';
import type { TenantState } from '../../../shared/infra/redis/tenants/tenant-state.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { randomBase62 } from '../../../shared/lifecycle/ids.ts';
import { findTenant } from '../../resources/keys/change-key.ts';
import { applyStatus } from './apply-status.ts';
import type { ApplyStatusDeps } from './apply-status.ts';

export interface MoveTenantDeps extends ApplyStatusDeps {
  moves: TenantMoves;
  marks: MoveMarks;
  state: TenantState;
  keys: Pick<KeyRepository, 'ids'>;
  accounts: Pick<AccountRepository, 'read'>;
  accountStore: Pick<AccountStore, 'publishBook'>;
  accessFlags: Pick<AccessFlags, 'block' | 'unblock' | 'blocked' | 'announce'>;
  acceptanceClock: AcceptanceClock;
  clock: Clock;
  log: Logger;
}

export interface MoveTenant {
  /**
   * Moves an idle tenant to another shard. Safe to repeat, also where a process died on the way. Throws `conflict` where the
   * tenant is not idle.
   */
  move(tenantId: string, to: number): Promise<TenantRow>;
  /**
   * Ends a move whose process has died, for whoever finds a tenant on its way; where there is none, takes away a mark or
   * a suspension that only Redis knows of.
   */
  recover(tenantId: string): Promise<void>;
}

/** A process that moves a tenant is heard of more often than this. */
const STALE_MS = 15_000;
const RENEW_MS = 3_000;
/** As long as whoever reads an answer may stall (api/relay/forward.ts), twice. */
const LINGER_MS = 60_000;
/** Times of limits and the order of acceptance go with the tenant; they are of the server's clock. */
const CLOCKS_APART_MS = 1_000;

function overtaken(cause?: unknown): ServiceError {
  return new ServiceError('conflict', 'The tenant is being moved by another call; look where it is, then try again.', {
    retryAfterSeconds: STALE_MS / 1000,
    ...(cause === undefined ? {} : { cause }),
  });
}

const counted = (count: number, one: string, many: string) =>
  count === 0 ? [] : [count === 1 ? one : `${count} ${many}`];

export function createMoveTenant(deps: MoveTenantDeps): MoveTenant {
  const { tenants, moves, marks, state, keys, accounts, accountStore, accessFlags, acceptanceClock, clock, log } = deps;

  /** Throws `conflict` with what is still under way. */
  async function assertIdle(shard: number, tenantId: string): Promise<void> {
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
  }

  /** Waits until the clock of the new shard has passed the time at which the former one was closed. */
  async function waitForClock({ from, to }: TenantMove): Promise<void> {
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
  }

  /** Says every few seconds that this process still moves the tenant. */
  function holdOf(tenantId: string, move: TenantMove): (when?: 'now') => Promise<void> {
    let heardAt = clock.now();
    return async (when) => {
      const now = clock.now();
      if (when === undefined && now - heardAt < RENEW_MS) return;
      if (!(await moves.renew(tenantId, move, now))) throw new Overtaken();
      heardAt = now;
    };
  }

  async function takeAway(tenantId: string, move: TenantMove): Promise<void> {
    const { from, to, token } = move;
    const owner = { tenantId, keyIds: await keys.ids(tenantId) };
    const mark = movingMark(token);
    const keepHold = holdOf(tenantId, move);
    // What an earlier stay has left, while the tenant is still served where it is.
    await marks.close(to, tenantId, token);
    // Another process may have taken over before the mark was set, and then it is in its way.
    await keepHold('now');
    await state.clear(to, owner, mark, { lingerMs: 0, onPage: keepHold });
    await marks.close(from, tenantId, token);
    await keepHold('now');
    await assertIdle(from, tenantId);
    await waitForClock(move);
    await state.copy(move, owner, mark, keepHold);
    // A Redis that came back without the mark has admitted requests meanwhile.
    if (!(await marks.isClosed(from, tenantId, token))) throw new Overtaken();
    if (!(await moves.arrive(tenantId, move))) throw new Overtaken();
  }

  /** What follows once the tenant's row names the new shard. Safe to repeat; rejects with `Overtaken` once it is over. */
  async function finish(tenantId: string, move: TenantMove): Promise<TenantRow> {
    const { from, to, token } = move;
    const keyIds = await keys.ids(tenantId);
    await moves.takeAlong(tenantId, move);
    // Whoever revokes a key looks for the tenant's shard afterwards: it is one of these, or found here.
    for (const keyId of await accessFlags.blocked(from, keyIds)) await accessFlags.block(to, keyId);
    const book = await accounts.read(tenantId);
    if (book !== undefined) await accountStore.publishBook(to, tenantId, book);
    const keepHold = holdOf(tenantId, move);
    // Where another process has ended the move, the tenant may be back by now.
    await keepHold('now');
    const hasLeft = await marks.leave(from, tenantId, movingMark(token), to);
    // A Redis that came back without the mark.
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

  /** Leaves the tenant where it is. False: it has arrived, or another process moves it. */
  async function giveUp(tenantId: string, move: TenantMove): Promise<boolean> {
    const { from, to, token } = move;
    // First of all: the process that began can do nothing any more.
    if (!(await moves.end(tenantId, move, from))) return false;
    await marks.take(from, tenantId, movingMark(token));
    await applyStatus(deps, await findTenant(tenants, tenantId));
    if (await marks.leave(to, tenantId, movingMark(token), from))
      await state.clear(to, { tenantId, keyIds: await keys.ids(tenantId) }, movedMark(from), { lingerMs: 0 });
    return true;
  }

  /** Brings a move that another process has begun to its end, if nothing was heard of that one lately. */
  async function settle(tenantId: string, move: TenantMove): Promise<void> {
    const now = clock.now();
    if (now - move.renewedAt < STALE_MS || !(await moves.renew(tenantId, move, now))) throw overtaken();
    const { shard } = await findTenant(tenants, tenantId);
    log.warn('A move of a tenant that a process had left is brought to its end.', { tenantId, shard });
    if (shard === move.to) await finish(tenantId, move);
    else await giveUp(tenantId, move);
  }

  /**
   * Takes away what keeps a tenant out of its own shard and nothing belongs to: a mark whose process was overtaken before it
   * had set it, or the flag of a suspension, where Redis has lost that it was taken back.
   */
  async function openShard({ _id: tenantId, shard }: TenantRow): Promise<void> {
    const mark = await marks.find(shard, tenantId);
    const latest = await findTenant(tenants, tenantId);
    if (latest.move !== undefined || latest.shard !== shard) return;
    if (mark !== undefined) await marks.take(shard, tenantId, mark);
    await applyStatus(deps, latest);
  }

  return {
    async move(tenantId, to) {
      const before = await findTenant(tenants, tenantId);
      if (before.move !== undefined) await settle(tenantId, before.move);
      const { shard: from } = await findTenant(tenants, tenantId);
      if (from === to) return findTenant(tenants, tenantId);
      // Before anything is closed, so that a tenant which is not idle notices nothing.
      await assertIdle(from, tenantId);
      const move: TenantMove = { from, to, token: randomBase62(24), renewedAt: clock.now() };
      if (!(await moves.begin(tenantId, move))) throw overtaken();
      try {
        await takeAway(tenantId, move);
      } catch (error) {
        await giveUp(tenantId, move).catch((fault: unknown) => {
          log.warn('A move of a tenant could not be given up; whoever finds it does so.', { tenantId, error: fault });
        });
        throw error instanceof Overtaken ? overtaken(error) : error;
      }
      return finish(tenantId, move).catch((error: unknown) => {
        throw error instanceof Overtaken ? overtaken(error) : error;
      });
    },

    async recover(tenantId) {
      const tenant = await findTenant(tenants, tenantId);
      if (tenant.move === undefined) await openShard(tenant);
      else if (clock.now() - tenant.move.renewedAt >= STALE_MS) await settle(tenantId, tenant.move);
    },
  };
}
