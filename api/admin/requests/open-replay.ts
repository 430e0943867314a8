import type { Recovery } from '../../../shared/requests/recovery.ts';
import { createIsDeletedSince } from '../../../shared/erasure-gate.ts';
import type { Pseudonyms } from '../../../shared/domain/pseudonyms.ts';
import type { IngressMetrics } from '../../../shared/metrics/ingress-series.ts';
import type { Logger } from '../../../shared/logging/logger.ts';
import { createFailedLines } from '../../../shared/mongo/batches/failed-lines.ts';
import { createLedgerRepository } from '../../../shared/mongo/accounts/ledger-repository.ts';
import type { MongoConnection } from '../../../shared/mongo/connection.ts';
import { createAnswerRepository } from '../../../shared/mongo/requests/answer-repository.ts';
import { createFailedIntents } from '../../../shared/mongo/requests/failed-intents.ts';
import { createPrincipalRepository } from '../../../shared/mongo/tenants/principal-repository.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import type { Keyspace } from '../../../shared/redis/keyspace.ts';
import type { RecordStore } from '../../../shared/requests/record-store.ts';
import { createAnswerCache } from '../../../shared/requests/answers.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { createReplayLine, createReplayChecks } from './replay-rules.ts';
import { createReplayFailed } from './replay-failed.ts';
import type { ReplayFailed } from './replay-failed.ts';
import { createReplayRequest } from './replay-request.ts';

export interface OpenReplayDeps {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  recovery: Recovery;
  records: RecordStore;
  pseudonyms: Pseudonyms;
  metrics: IngressMetrics;
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
  const isDeletedSince = createIsDeletedSince(mongo, pseudonyms);
  const checks = createReplayChecks({ answers, isDeletedSince, clock, ledger: createLedgerRepository(mongo) });
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
    replayLine: createReplayLine({ lines, principals, isDeletedSince, clock }),
    presence: recovery.presence,
    conclude: recovery.conclude,
  });
}
