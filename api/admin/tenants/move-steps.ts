import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { AccountRepository } from '../../../shared/infra/mongo/accounts/account-repository.ts';
import type { KeyRepository } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { TenantMoves } from '../../../shared/infra/mongo/tenants/tenant-moves.ts';
import type { TenantMove, TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../../shared/infra/redis/accounts/account-store.ts';
import type { AccessFlags } from '../../../shared/infra/redis/tenants/access-flags.ts';
import { movedMark, movingMark } from '../../../shared/infra/redis/tenants/move-marks.ts';
import type { MoveMarks } from '../../../shared/infra/redis/tenants/move-marks.ts';
import { Overtaken } from '../../../shared/infra/redis/tenants/tenant-state.ts';
import type { TenantState } from '../../../shared/infra/redis/tenants/tenant-state.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { findTenant } from '../../resources/keys/change-key.ts';
import { applyStatus } from './apply-status.ts';
import type { ApplyStatusDeps } from './apply-status.ts';
import type { MoveChecks } from './move-checks.ts';

export interface MoveStepsDeps extends ApplyStatusDeps {
  checks: MoveChecks;
  moves: Pick<TenantMoves, 'renew' | 'arrive' | 'takeAlong' | 'end'>;
  marks: MoveMarks;
  state: Pick<TenantState, 'copy' | 'clear'>;
  keys: Pick<KeyRepository, 'ids'>;
  accounts: Pick<AccountRepository, 'read'>;
  accountStore: Pick<AccountStore, 'publishBook'>;
  accessFlags: Pick<AccessFlags, 'block' | 'unblock' | 'blocked' | 'announce'>;
  clock: Clock;
  log: Logger;
}

/** A move has two halves, and the tenant's row says which of them is under way: it names the new shard from `carry` on. */
export interface MoveSteps {
  /** Closes both shards for the tenant and copies what Redis has of it. Rejects with `Overtaken` once the move is over. */
  carry(tenantId: string, move: TenantMove): Promise<void>;
  /** What follows once the tenant's row names the new shard. Safe to repeat; rejects with `Overtaken` once it is over. */
  finish(tenantId: string, move: TenantMove): Promise<TenantRow>;
  /** Leaves the tenant where it is. False: it has arrived, or another process moves it. */
  giveUp(tenantId: string, move: TenantMove): Promise<boolean>;
}

/** Well below the time after which a move is taken for left (move-tenant.ts). */
const RENEW_MS = 3_000;
/** As long as whoever reads an answer may stall (api/relay/forward.ts), twice. */
const LINGER_MS = 60_000;

export function createMoveSteps(deps: MoveStepsDeps): MoveSteps {
  const { checks, tenants, moves, marks, state, keys, accounts, accountStore, accessFlags, clock, log } = deps;

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

  return {
    async carry(tenantId: string, move: TenantMove): Promise<void> {
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
      await checks.assertIdle(from, tenantId);
      await checks.waitForClock(move);
      await state.copy(move, owner, mark, keepHold);
      // A Redis that came back without the mark has admitted requests meanwhile.
      if (!(await marks.isClosed(from, tenantId, token))) throw new Overtaken();
      if (!(await moves.arrive(tenantId, move))) throw new Overtaken();
    },

    async finish(tenantId: string, move: TenantMove): Promise<TenantRow> {
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
    },

    async giveUp(tenantId: string, move: TenantMove): Promise<boolean> {
      const { from, to, token } = move;
      // First of all: the process that began can do nothing any more.
      if (!(await moves.end(tenantId, move, from))) return false;
      await marks.take(from, tenantId, movingMark(token));
      await applyStatus(deps, await findTenant(tenants, tenantId));
      if (await marks.leave(to, tenantId, movingMark(token), from))
        await state.clear(to, { tenantId, keyIds: await keys.ids(tenantId) }, movedMark(from), { lingerMs: 0 });
      return true;
    },
  };
}
