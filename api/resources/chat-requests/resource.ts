import type { RequestTrace } from '../../../shared/contracts/request-trace.ts';
import type { StreamEntry } from '../../../shared/contracts/events.ts';
import type { RequestRecord } from '../../../shared/infra/redis/requests/record-store.ts';
import { answerHead, toUsage } from '../../relay/answer.ts';
import { outcomeOf } from '../../relay/outcome.ts';

/** Unix seconds, with milliseconds behind the point: a timeline of whole seconds would say nothing. */
function seconds(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : timeMs / 1000;
}

function statusOf({ state, status }: RequestRecord): string {
  if (state === 'accepted') return 'queued';
  return state === 'running' ? 'in_progress' : (status ?? 'completed');
}

function timelineOf(record: RequestRecord, trace: RequestTrace | undefined, settledAt: number | undefined) {
  return {
    accepted_at: seconds(record.acceptedAt),
    queued_at: seconds(record.acceptedAt),
    started_at: seconds(record.startedAt),
    moderated_at: seconds(trace?.moderatedAt),
    moderation: trace?.moderation ?? null,
    first_token_at: seconds(record.firstTokenAt),
    finished_at: seconds(record.finishedAt),
    settled_at: seconds(settledAt),
    attempts: (trace?.attempts ?? []).map(({ provider, model, startedAt, endedAt, outcome }) => ({
      provider,
      model,
      started_at: seconds(startedAt),
      ended_at: seconds(endedAt),
      outcome,
    })),
  };
}

/** `chat.request` (docs/spec/contract.md section 3, Look up). `entries`: the whole stream so far. */
export function toRequestResource(
  record: RequestRecord,
  entries: readonly StreamEntry[],
  settledAt: number | undefined,
) {
  const terminal = entries.at(-1)?.terminal;
  const outcome = outcomeOf(answerHead(record), entries);
  return {
    id: record.requestId,
    object: 'chat.request',
    created_at: Math.floor(record.acceptedAt / 1000),
    status: statusOf(record),
    timeline: timelineOf(record, terminal?.trace, settledAt),
    response: outcome !== undefined && 'responseJson' in outcome ? (JSON.parse(outcome.responseJson) as object) : null,
    error: outcome !== undefined && 'error' in outcome ? outcome.error : null,
    usage: terminal === undefined ? null : toUsage(terminal.usage),
  };
}
