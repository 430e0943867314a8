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

/** What a line's way into the queue needs, as that of any request. */
export interface OpenSendLineDeps extends Pick<
  AdmissionDeps,
  'accountStore' | 'routing' | 'isFull' | 'pseudonyms' | 'clock' | 'log'
> {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  admissions: AdmissionStore;
  /** Written again whenever Redis is back. */
  recentWrites: Pick<RecentWrites, 'note'>;
  requestTimeoutMs: number;
  /** The name under which the shard's lease is held. */
  workerId: string;
}

/** Puts together what admits and enqueues lines. */
export function openSendLine(deps: OpenSendLineDeps, watch: ProviderWatch): SendLine {
  const { mongo, redis, keyspace, admissions, recentWrites, requestTimeoutMs, clock, log } = deps;
  const enqueuer = createEnqueuer({
    line: createLineStore(redis, keyspace, requestTimeoutMs),
    // Nobody was told that a line was not accepted: one that a worker has runs on, and is found as sent.
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
      // A line that a full Redis refuses is sent again under its id, which finds it where it was let in before.
      if (!isRefused) enqueuer.takeBack(requestId, principal);
    },
  });
  return createSendLine({ admit, enqueuer, watch, leaderId: deps.workerId, log });
}
