import { createErasureGate, gateAnswers } from '../compliance/erasure-gate.ts';
import type { Logger } from '../infra/logging/logger.ts';
import { createAccountRepository } from '../infra/mongo/accounts/account-repository.ts';
import { createLedgerRepository } from '../infra/mongo/accounts/ledger-repository.ts';
import type { MongoConnection } from '../infra/mongo/connection.ts';
import { createErasureRepository } from '../infra/mongo/compliance/erasure-repository.ts';
import { createAnswerRepository } from '../infra/mongo/requests/answer-repository.ts';
import { createFailedIntents } from '../infra/mongo/requests/failed-intents.ts';
import { createRequestIntents } from '../infra/mongo/requests/request-intents.ts';
import { createPrincipalRepository } from '../infra/mongo/tenants/principal-repository.ts';
import type { RedisClient } from '../infra/redis/connection.ts';
import type { Keyspace } from '../infra/redis/keyspace.ts';
import { createAnswerCache } from '../infra/redis/requests/answer-cache.ts';
import { createLineStore } from '../infra/redis/requests/line-store.ts';
import { createReplayStore } from '../infra/redis/requests/replay-store.ts';
import type { ReplayStore } from '../infra/redis/requests/replay-store.ts';
import { createRequestPresence } from '../infra/redis/requests/request-presence.ts';
import type { RequestPresence } from '../infra/redis/requests/request-presence.ts';
import type { TimeLimit } from '../infra/redis/timing.ts';
import { createAdmission } from './admission.ts';
import type { AdmissionDeps } from './admission.ts';
import { createConcludeIntent } from './conclude-intent.ts';
import type { ConcludeIntent } from './conclude-intent.ts';
import { createRecoverRequest } from './recover-request.ts';
import type { RecoverRequest } from './recover-request.ts';

export interface OpenRecoveryDeps extends Pick<
  AdmissionDeps,
  'store' | 'accountStore' | 'routing' | 'isFull' | 'pseudonyms' | 'clock'
> {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  requestTimeoutMs: number;
  limit: TimeLimit;
  log: Logger;
}

export interface Recovery {
  recover: RecoverRequest;
  conclude: ConcludeIntent;
  presence: RequestPresence;
  admit: ReturnType<typeof createAdmission>;
  replays: ReplayStore;
}

/** Composes the recovery of lost requests, for ingress and worker. */
export function openRecovery(deps: OpenRecoveryDeps): Recovery {
  const { mongo, redis, keyspace, clock, log } = deps;
  const presence = createRequestPresence(redis, keyspace, deps.limit);
  const admit = createAdmission({ ...deps, accounts: createAccountRepository(mongo), takeBack: () => undefined });
  const replays = createReplayStore(redis, keyspace, deps);
  const gate = createErasureGate({ erasures: createErasureRepository(mongo), pseudonyms: deps.pseudonyms });
  const repository = createAnswerRepository(mongo);
  const answers = { ...repository, ...gateAnswers(repository, gate) };
  const conclude = createConcludeIntent({
    answers,
    clock,
    intents: createRequestIntents(mongo),
    failed: createFailedIntents(mongo),
    cache: createAnswerCache(redis, keyspace),
  });
  const recover = createRecoverRequest({
    presence,
    admit,
    replays,
    clock,
    log,
    line: createLineStore(redis, keyspace, deps.requestTimeoutMs),
    admissions: deps.store,
    answers,
    gate,
    ledger: createLedgerRepository(mongo),
    principals: createPrincipalRepository(mongo),
  });
  return { recover, conclude, presence, admit, replays };
}
