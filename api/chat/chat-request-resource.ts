import type { RequestTrace, Terminal } from '../../shared/contracts/events.ts';
import { toWireUsage } from '../../shared/contracts/events.ts';
import type { QueuePlace, RequestRecord } from '../../shared/requests/record-store.ts';
import {
  errorObjectSchema,
  constant,
  id,
  integer,
  listOf,
  named,
  nullable,
  number,
  object,
  oneOf,
  text,
  time,
  toSeconds,
} from '../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../contract/path-parameters.ts';
import { around, toWaitSeconds } from '../relay/sse.ts';
import type { EndedAs, JsonText } from '../relay/sse.ts';
import {
  completionSchema,
  embeddingListSchema,
  moderationSchema as moderationVerdictSchema,
  usageSchema,
} from './completion-schemas.ts';

const moment = (description: string) => nullable(number(`${description}, in Unix seconds with milliseconds.`));

const attemptSchema = object({
  provider: text(),
  model: text(),
  started_at: moment('When the provider was called'),
  ended_at: moment('When the call ended'),
  outcome: text('`ok`, why it failed, or `breaker_open`: it was not made.'),
});

const moderationSchema = object({
  backend: text(),
  verdict: oneOf(['passed', 'flagged_input', 'flagged_output', 'unavailable']),
  categories: listOf(text()),
});

export const requestSchema = named(
  'ChatRequestState',
  object({
    id: id('req'),
    object: constant('chat.request'),
    created_at: time('When it was accepted'),
    status: oneOf(['queued', 'in_progress', 'completed', 'failed', 'cancelled']),
    queue: nullable(
      object({
        position: integer("Among the account's own requests that wait, from 1.", 1),
        estimated_wait_seconds: integer('Until a worker begins, as things are.', 0),
      }),
    ),
    timeline: object({
      accepted_at: moment('When it was accepted'),
      queued_at: moment('When it was queued'),
      started_at: moment('When a worker began'),
      moderated_at: moment('When moderation had passed the messages'),
      moderation: nullable(moderationSchema),
      first_token_at: moment('When the first text came'),
      finished_at: moment('When it ended'),
      settled_at: moment('When it was booked'),
      attempts: listOf(attemptSchema),
    }),
    response: {
      anyOf: [completionSchema, embeddingListSchema, moderationVerdictSchema, { type: 'null' }],
      description: 'As its endpoint answers; null until it has ended with an answer.',
    },
    error: { anyOf: [errorObjectSchema, { type: 'null' }], description: 'Null unless it has failed.' },
    usage: { anyOf: [usageSchema, { type: 'null' }], description: 'Null until it has ended.' },
  }),
);

/** Unix seconds with milliseconds as decimals: a timeline in whole seconds would say nothing. */
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

/** A request that is in no queue, although nobody has begun it, is just being handed out. */
function queueOf({ state }: RequestRecord, place: QueuePlace = { position: 1, waitMs: 0 }) {
  if (state !== 'accepted') return null;
  return { position: place.position, estimated_wait_seconds: toWaitSeconds(place.waitMs) };
}

/** `chat.request` as JSON (docs/spec.md#look-up-and-cancelling). */
export function requestJson(
  record: RequestRecord,
  terminal: Terminal | undefined,
  outcome: EndedAs | undefined,
  { settledAt, place }: { settledAt: number | undefined; place: QueuePlace | undefined },
): JsonText {
  const before = JSON.stringify({
    id: record.requestId,
    object: 'chat.request',
    created_at: toSeconds(record.acceptedAt),
    status: statusOf(record),
    queue: queueOf(record, place),
    timeline: timelineOf(record, terminal?.trace, settledAt),
  });
  const after = JSON.stringify({
    error: outcome !== undefined && 'error' in outcome ? outcome.error : null,
    usage: terminal === undefined ? null : toWireUsage(terminal.usage),
  });
  const response = outcome !== undefined && 'responseJson' in outcome ? outcome.responseJson : 'null';
  return around(`${before.slice(0, -1)},"response":`, response, `,${after.slice(1)}`);
}

export const REQUEST_EXAMPLE = {
  id: PATH_PARAMETERS.requestId.example,
  object: 'chat.request',
  created_at: 1_795_255_200,
  status: 'completed',
  queue: null,
  timeline: {
    accepted_at: 1_795_255_200.118,
    queued_at: 1_795_255_200.118,
    started_at: 1_795_255_200.125,
    moderated_at: 1_795_255_200.127,
    moderation: { backend: 'local', verdict: 'passed', categories: [] },
    first_token_at: 1_795_255_200.431,
    finished_at: 1_795_255_201.002,
    settled_at: null,
    attempts: [
      {
        provider: 'openai',
        model: 'gpt-5-mini',
        started_at: 1_795_255_200.13,
        ended_at: 1_795_255_201.001,
        outcome: 'ok',
      },
    ],
  },
  response: {
    id: PATH_PARAMETERS.requestId.example,
    object: 'chat.completion',
    created: 1_795_255_200,
    model: 'mobius',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'A noun names a person, a place or a thing.' },
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 14, completion_tokens: 9, total_tokens: 23 },
  },
  error: null,
  usage: { prompt_tokens: 14, completion_tokens: 9, total_tokens: 23 },
};
