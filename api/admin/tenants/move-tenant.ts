import { ServiceError } from '../../../shared/errors/service-error.ts';
import { randomBase62 } from '../../../shared/lifecycle/ids.ts';
import type { MongoConnection } from '../../../shared/mongo/connection.ts';
import { createTenantMoves } from '../../../shared/mongo/administration/tenant-moves.ts';
import type { TenantMoves } from '../../../shared/mongo/administration/tenant-moves.ts';
import type { TenantMove, TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import type { Keyspace } from '../../../shared/redis/keyspace.ts';
import { Overtaken, createMoveMarks, createTenantState } from '../../../shared/requests/tenant-move.ts';
import type { TenantState } from '../../../shared/requests/tenant-move.ts';
import { createAcceptanceClock } from '../../../shared/requests/record-store.ts';
import { findTenant } from '../../resources/keys/key-changes.ts';
import { createMoveChecks, applyStatus, createMoveSteps } from './move-steps.ts';
import type { MoveChecksDeps, MoveStepsDeps } from './move-steps.ts';

export interface MoveTenantDeps extends Omit<MoveStepsDeps, 'checks'>, Pick<MoveChecksDeps, 'acceptanceClock'> {
  moves: TenantMoves;
  state: TenantState;
}

export interface MoveTenant {
  /** Moves an idle tenant; throws `conflict` if it is not. Safe to repeat, even after a process died on the way. */
  move(tenantId: string, to: number): Promise<TenantRow>;
  /** Ends a move whose process has died. Without a move, removes a mark or suspension that only Redis knows. */
  recover(tenantId: string): Promise<void>;
}

/** A process that moves a tenant renews the move more often than this (move-steps.ts). */
const STALE_MS = 15_000;

function overtaken(cause?: unknown): ServiceError {
  return new ServiceError('conflict', 'The tenant is being moved by another call; look where it is, then try again.', {
    retryAfterSeconds: STALE_MS / 1000,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Completes or gives up a move that another process has begun, unless that process has renewed it lately. */
async function settle(
  { clock, moves, tenants, log }: MoveTenantDeps,
  steps: ReturnType<typeof createMoveSteps>,
  tenantId: string,
  move: TenantMove,
): Promise<void> {
  const now = clock.now();
  if (now - move.renewedAt < STALE_MS || !(await moves.renew(tenantId, move, now))) throw overtaken();
  const { shard } = await findTenant(tenants, tenantId);
  log.warn('A move of a tenant that a process had left is brought to its end.', { tenantId, shard });
  if (shard === move.to) await steps.finish(tenantId, move);
  else await steps.giveUp(tenantId, move);
}

function createMoveTenant(deps: MoveTenantDeps): MoveTenant {
  const { tenants, moves, marks, clock, log } = deps;
  const checks = createMoveChecks(deps);
  const steps = createMoveSteps({ ...deps, checks });

  /**
   * Removes stale obstacles that keep a tenant out of its own shard: a mark whose process was overtaken before it set
   * the mark, or the flag of a suspension whose end Redis has lost.
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
      if (before.move !== undefined) await settle(deps, steps, tenantId, before.move);
      const { shard: from } = await findTenant(tenants, tenantId);
      if (from === to) return findTenant(tenants, tenantId);
      // Checked before anything is closed, so that a tenant that is not idle notices nothing.
      await checks.assertIdle(from, tenantId);
      const move: TenantMove = { from, to, token: randomBase62(24), renewedAt: clock.now() };
      if (!(await moves.begin(tenantId, move))) throw overtaken();
      try {
        await steps.carry(tenantId, move);
      } catch (error) {
        await steps.giveUp(tenantId, move).catch((fault: unknown) => {
          log.warn('A move of a tenant could not be given up; whoever finds it does so.', { tenantId, error: fault });
        });
        throw error instanceof Overtaken ? overtaken(error) : error;
      }
      return steps.finish(tenantId, move).catch((error: unknown) => {
        throw error instanceof Overtaken ? overtaken(error) : error;
      });
    },

    async recover(tenantId) {
      const tenant = await findTenant(tenants, tenantId);
      if (tenant.move === undefined) await openShard(tenant);
      else if (clock.now() - tenant.move.renewedAt >= STALE_MS) await settle(deps, steps, tenantId, tenant.move);
    },
  };
}

export interface MoveStores {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
}

type Opened = 'moves' | 'marks' | 'state' | 'acceptanceClock';

export function openMoveTenant(
  { mongo, redis, keyspace }: MoveStores,
  deps: Omit<MoveTenantDeps, Opened> & Partial<Pick<MoveTenantDeps, Opened>>,
): MoveTenant {
  return createMoveTenant({
    moves: createTenantMoves(mongo),
    marks: createMoveMarks(redis, keyspace),
    state: createTenantState(redis, keyspace),
    acceptanceClock: createAcceptanceClock(redis, keyspace),
    ...deps,
  });
}
