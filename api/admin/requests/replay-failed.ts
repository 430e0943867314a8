import { createDeletions } from '../../../shared/erasure-gate.ts';
import type { IngressMetrics } from '../../../shared/metrics/ingress-series.ts';
import { createLedgerRepository } from '../../../shared/mongo/accounts/ledger-repository.ts';
import { createFailedLines } from '../../../shared/mongo/batches/failed-lines.ts';
import type { FailedLine, FailedLines } from '../../../shared/mongo/batches/failed-lines.ts';
import { createAnswerRepository } from '../../../shared/mongo/requests/answer-repository.ts';
import { createFailedIntents } from '../../../shared/mongo/requests/failed-intents.ts';
import type { FailedFilter, FailedIntent, FailedIntents } from '../../../shared/mongo/requests/failed-intents.ts';
import { createPrincipalRepository } from '../../../shared/mongo/tenants/principal-repository.ts';
import type { ProcessParts } from '../../../shared/process-parts.ts';
import { createAnswerCache } from '../../../shared/requests/answers.ts';
import type { RecordStore } from '../../../shared/requests/record-store.ts';
import type { ConcludeIntent, Recovery } from '../../../shared/requests/recovery.ts';
import type { RequestPresence } from '../../../shared/requests/rollback.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { createReplayChecks, createReplayLine, skip } from './replay-rules.ts';
import type { ReplayLine, ReplayOutcome } from './replay-rules.ts';
import { createReplayRequest } from './replay-request.ts';
import type { ReplayRequest } from './replay-request.ts';

type FailedRequest = FailedIntent | FailedLine;

/** The position at which a page ends. Batch lines come after all other requests. */
export type FailedPosition = Pick<FailedRequest, 'kind' | 'acceptedAt' | 'failedAt' | 'requestId'>;

export interface ReplayCall {
  filter: FailedFilter;
  after: FailedPosition | undefined;
  limit: number;
  isDryRun: boolean;
}

/** The outcome for a request; `failed` is undefined if the id is not that of a failed request. */
export interface ReplayedOne {
  requestId: string;
  failed: FailedRequest | undefined;
  outcome: ReplayOutcome | { kind: 'matched' };
}

export interface ReplayReport {
  /** The requests that match the filter, on all pages. */
  matched: number;
  requests: ReplayedOne[];
  /** Undefined: this was the last page. */
  next: FailedPosition | undefined;
}

export type ReplayFailed = (call: ReplayCall) => Promise<ReplayReport>;

interface ReplayFailedDeps {
  failed: FailedIntents;
  presence: RequestPresence;
  conclude: ConcludeIntent;
  lines: FailedLines;
  replay: ReplayRequest;
  replayLine: ReplayLine;
  /** Counts outcomes: `replayed`, or the reason why not. */
  countReplay: (outcome: string) => void;
  clock: Clock;
}

/** Tenants that are replayed at once; the requests of one tenant run in the order of their acceptance. */
const TENANTS_AT_ONCE = 8;

/** Requests in the order of acceptance, followed by lines in the order of their failures. */
async function listFailed(
  { failed, lines }: ReplayFailedDeps,
  filter: FailedFilter,
  after: FailedPosition | undefined,
  limit: number,
  now: number,
): Promise<FailedRequest[]> {
  const isLine = after?.kind === 'batch';
  const found = isLine ? [] : await failed.list(filter, { after, limit }, now);
  if (found.length === limit) return found;
  const more = await lines.list(filter, { after: isLine ? after : undefined, limit: limit - found.length });
  return [...found, ...more];
}

async function replayAll(
  { replayLine, replay, countReplay }: ReplayFailedDeps,
  found: readonly FailedRequest[],
): Promise<ReplayedOne[]> {
  const outcomes = new Map<string, ReplayOutcome>();
  const tenants = [...Map.groupBy(found, ({ tenantId }) => tenantId).values()];
  async function work(): Promise<void> {
    for (let own = tenants.shift(); own !== undefined; own = tenants.shift()) {
      for (const one of own) {
        const outcome = await (one.kind === 'batch' ? replayLine(one) : replay(one));
        countReplay(outcome.kind === 'skipped' ? outcome.reason : outcome.kind);
        outcomes.set(one.requestId, outcome);
      }
    }
  }
  await Promise.all(Array.from({ length: TENANTS_AT_ONCE }, work));
  return found.map((one) => ({
    requestId: one.requestId,
    failed: one,
    outcome: outcomes.get(one.requestId) ?? skip('not_replayable'),
  }));
}

function createReplayFailed(deps: ReplayFailedDeps): ReplayFailed {
  const { failed, lines, presence, conclude, clock } = deps;

  /** The sweep records a failure only after some seconds; a replay by request id need not wait for that. */
  async function concludeEnded(requestIds: readonly string[]): Promise<void> {
    for (const intent of await failed.open(requestIds, clock.now())) {
      const [found] = await presence.look(intent.shard, [intent.requestId]);
      if (found === 'failed') await conclude(intent);
    }
  }

  function unknownOf({ requestIds = [] }: FailedFilter, found: readonly FailedRequest[]): ReplayedOne[] {
    const known = new Set(found.map(({ requestId }) => requestId));
    return requestIds
      .filter((requestId) => !known.has(requestId))
      .map((requestId) => ({ requestId, failed: undefined, outcome: skip('not_replayable') }));
  }

  return async ({ filter, after, limit, isDryRun }) => {
    if (filter.requestIds !== undefined) await concludeEnded(filter.requestIds);
    const now = clock.now();
    const [requests, linesFound, more] = await Promise.all([
      failed.count(filter, now),
      lines.count(filter),
      listFailed(deps, filter, after, limit + 1, now),
    ]);
    const page = more.slice(0, limit);
    const done = isDryRun
      ? page.map((one) => ({ requestId: one.requestId, failed: one, outcome: { kind: 'matched' } as const }))
      : await replayAll(deps, page);
    const isLast = more.length <= limit;
    return {
      matched: requests + linesFound,
      requests: isLast && after === undefined ? [...done, ...unknownOf(filter, page)] : done,
      next: isLast ? undefined : page.at(-1),
    };
  };
}

export function openReplay(
  parts: ProcessParts & { records: RecordStore },
  recovery: Recovery,
  { replays }: IngressMetrics,
): ReplayFailed {
  const { mongo, redis, keyspace, clock } = parts;
  const failed = createFailedIntents(mongo);
  const answers = createAnswerRepository(mongo);
  const lines = createFailedLines(mongo);
  const principals = createPrincipalRepository(mongo);
  const { isDeletedSince } = createDeletions(mongo, parts.pseudonyms);
  const checks = createReplayChecks({ answers, isDeletedSince, clock, ledger: createLedgerRepository(mongo) });
  const cache = createAnswerCache(redis, keyspace);
  return createReplayFailed({
    ...recovery,
    failed,
    lines,
    replay: createReplayRequest({ ...parts, ...recovery, failed, checks, answers, cache, principals }),
    clock,
    countReplay: (outcome) => {
      replays.inc({ outcome });
    },
    replayLine: createReplayLine({ lines, principals, isDeletedSince, clock }),
  });
}
