import { createAdmission } from '../../shared/admission/admission.ts';
import type { AdmissionDeps } from '../../shared/admission/admission.ts';
import { createEnqueuer } from '../../shared/admission/enqueue.ts';
import { createAccountRepository } from '../../shared/infra/mongo/accounts/account-repository.ts';
import type { MongoConnection } from '../../shared/infra/mongo/connection.ts';
import type { RedisClient } from '../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../shared/infra/redis/keyspace.ts';
import type { RecentWrites } from '../../shared/infra/redis/recent-writes.ts';
import type { AdmissionStore } from '../../shared/infra/redis/requests/admission-store.ts';
import { createLineStore } from '../../shared/infra/redis/requests/line-store.ts';
import type { ProviderWatch } from './provider-watch.ts';
import { createSendLine } from './send-line.ts';
import type { SendLine } from './send-line.ts';

/** What is needed to admit and enqueue a line, as for any request. */
export interface OpenSendLineDeps extends Pick<
  AdmissionDeps,
  'accountStore' | 'routing' | 'isFull' | 'pseudonyms' | 'clock' | 'log'
> {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  admissions: AdmissionStore;
  /** Replayed whenever Redis is back. */
  recentWrites: Pick<RecentWrites, 'note'>;
  requestTimeoutMs: number;
  /** The name under which the shard's lease is held. */
  workerId: string;
}

/** Opens the parts that admit and enqueue lines. */
export function openSendLine(deps: OpenSendLineDeps, watch: ProviderWatch): SendLine {
  const { mongo, redis, keyspace, admissions, recentWrites, requestTimeoutMs, clock, log } = deps;
  const enqueuer = createEnqueuer({
    line: createLineStore(redis, keyspace, requestTimeoutMs),
    // No caller got an error for the line, so if a worker already has it, it runs on and is later found as sent.
    store: { voidForGood: admissions.void, disown: admissions.void },
    giveUpAfterMs: requestTimeoutMs,
    recentWrites,
    clock,
    log,
  });
  const admit = createAdmission({
    ...deps,
    store: admissions,
    accounts: createAccountRepository(mongo),
    takeBack: (requestId, principal, isRefused) => {
      // A line refused by a full Redis is sent again under the same id; if it was admitted before, it is found.
      if (!isRefused) enqueuer.takeBack(requestId, principal);
    },
  });
  return createSendLine({ admit, enqueuer, watch, leaderId: deps.workerId, log });
}
