import type { Recovery } from '../../../shared/admission/open-recovery.ts';
import type { Pseudonyms } from '../../../shared/domain/compliance/pseudonyms.ts';
import type { IngressMetrics } from '../../../shared/infra/metrics/ingress-series.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import { createFailedLines } from '../../../shared/infra/mongo/batches/failed-lines.ts';
import { createErasureRepository } from '../../../shared/infra/mongo/compliance/erasure-repository.ts';
import { createLedgerRepository } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import type { MongoConnection } from '../../../shared/infra/mongo/connection.ts';
import { createEntityRepository } from '../../../shared/infra/mongo/entities/entity-repository.ts';
import { createAnswerRepository } from '../../../shared/infra/mongo/requests/answer-repository.ts';
import { createFailedIntents } from '../../../shared/infra/mongo/requests/failed-intents.ts';
import { createPrincipalRepository } from '../../../shared/infra/mongo/tenants/principal-repository.ts';
import type { RedisClient } from '../../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../../shared/infra/redis/keyspace.ts';
import type { RecordStore } from '../../../shared/infra/redis/requests/record-store.ts';
import { createAnswerCache } from '../../../shared/infra/redis/requests/answer-cache.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { createReplayLine } from './replay-line.ts';
import { createReplayFailed } from './replay-failed.ts';
import type { ReplayFailed } from './replay-failed.ts';
import { createReplayChecks } from './replay-checks.ts';
import { createReplayRequest } from './replay-request.ts';

export interface OpenReplayDeps {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  recovery: Recovery;
  records: Pick<RecordStore, 'cancel'>;
  pseudonyms: Pick<Pseudonyms, 'of'>;
  metrics: Pick<IngressMetrics, 'replays'>;
  clock: Clock;
  log: Logger;
}

/** Composes the parts that replay failed requests. */
export function openReplay(deps: OpenReplayDeps): ReplayFailed {
  const { mongo, redis, keyspace, recovery, records, pseudonyms, metrics, clock, log } = deps;
  const failed = createFailedIntents(mongo);
  const answers = createAnswerRepository(mongo);
  const cache = createAnswerCache(redis, keyspace);
  const lines = createFailedLines(mongo);
  const principals = createPrincipalRepository(mongo);
  const checks = createReplayChecks({
    answers,
    pseudonyms,
    clock,
    ledger: createLedgerRepository(mongo),
    entities: createEntityRepository(mongo),
    erasures: createErasureRepository(mongo),
  });
  const { admit, replays } = recovery;
  const replay = createReplayRequest({
    failed,
    checks,
    admit,
    replays,
    answers,
    cache,
    principals,
    records,
    clock,
    log,
  });
  return createReplayFailed({
    failed,
    lines,
    replay,
    clock,
    countReplay: (outcome) => {
      metrics.replays.inc({ outcome });
    },
    replayLine: createReplayLine({ lines, principals, clock }),
    presence: recovery.presence,
    conclude: recovery.conclude,
  });
}
