import type { MongoConnection } from '../../../shared/infra/mongo/connection.ts';
import { createTenantMoves } from '../../../shared/infra/mongo/tenants/tenant-moves.ts';
import type { RedisClient } from '../../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../../shared/infra/redis/keyspace.ts';
import { createAcceptanceClock } from '../../../shared/infra/redis/requests/acceptance-clock.ts';
import { createMoveMarks } from '../../../shared/infra/redis/tenants/move-marks.ts';
import { createTenantState } from '../../../shared/infra/redis/tenants/tenant-state.ts';
import { createMoveTenant } from './move-tenant.ts';
import type { MoveTenant, MoveTenantDeps } from './move-tenant.ts';

/** What a move writes to: both stores. */
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
