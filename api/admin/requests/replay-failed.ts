import type { ConcludeIntent } from '../../../shared/admission/conclude-intent.ts';
import type {
  FailedFilter,
  FailedIntent,
  FailedIntents,
  FailedPosition,
} from '../../../shared/infra/mongo/requests/failed-intents.ts';
import type { RequestPresence } from '../../../shared/infra/redis/requests/request-presence.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { skip } from './replay-request.ts';
import type { ReplayOutcome, ReplayRequest } from './replay-request.ts';

export interface ReplayCall {
  filter: FailedFilter;
  after: FailedPosition | undefined;
  limit: number;
  isDryRun: boolean;
}

/** What became of a request; `failed` is undefined for an id that is none of a failed request. */
export interface ReplayedOne {
  requestId: string;
  failed: FailedIntent | undefined;
  outcome: ReplayOutcome | { kind: 'matched' };
}

export interface ReplayReport {
  /** How many requests the filter finds, on all pages. */
  matched: number;
  requests: ReplayedOne[];
  /** Undefined: this was the last page. */
  next: FailedPosition | undefined;
}

export type ReplayFailed = (call: ReplayCall) => Promise<ReplayReport>;

export interface ReplayFailedDeps {
  failed: Pick<FailedIntents, 'list' | 'count' | 'open'>;
  presence: Pick<RequestPresence, 'look'>;
  conclude: ConcludeIntent;
  replay: ReplayRequest;
  /** Counts by `replayed`, or by why not. */
  countReplay: (outcome: string) => void;
  clock: Clock;
}

/** Tenants at once; requests of one go in the order of their acceptance. */
const TENANTS_AT_ONCE = 8;

export function createReplayFailed(deps: ReplayFailedDeps): ReplayFailed {
  const { failed, presence, conclude, replay, countReplay, clock } = deps;

  /** The sweep tells some seconds after a failure that there was one; who asks for it by its id need not wait. */
  async function concludeEnded(requestIds: readonly string[]): Promise<void> {
    for (const intent of await failed.open(requestIds, clock.now())) {
      const [found] = await presence.look(intent.shard, [intent.requestId]);
      if (found === 'failed') await conclude(intent);
    }
  }

  async function replayAll(found: readonly FailedIntent[]): Promise<ReplayedOne[]> {
    const outcomes = new Map<string, ReplayOutcome>();
    const tenants = [...Map.groupBy(found, ({ tenantId }) => tenantId).values()];
    async function work(): Promise<void> {
      for (let own = tenants.shift(); own !== undefined; own = tenants.shift()) {
        for (const one of own) {
          const outcome = await replay(one);
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

  function unknownOf({ requestIds = [] }: FailedFilter, found: readonly FailedIntent[]): ReplayedOne[] {
    const known = new Set(found.map(({ requestId }) => requestId));
    return requestIds
      .filter((requestId) => !known.has(requestId))
      .map((requestId) => ({ requestId, failed: undefined, outcome: skip('not_replayable') }));
  }

  return async ({ filter, after, limit, isDryRun }) => {
    if (filter.requestIds !== undefined) await concludeEnded(filter.requestIds);
    const now = clock.now();
    const [matched, more] = await Promise.all([
      failed.count(filter, now),
      failed.list(filter, { after, limit: limit + 1 }, now),
    ]);
    const page = more.slice(0, limit);
    const done = isDryRun
      ? page.map((one) => ({ requestId: one.requestId, failed: one, outcome: { kind: 'matched' } as const }))
      : await replayAll(page);
    const isLast = more.length <= limit;
    return {
      matched,
      requests: isLast && after === undefined ? [...done, ...unknownOf(filter, page)] : done,
      next: isLast ? undefined : page.at(-1),
    };
  };
}
