import type { Response } from 'express';
import Joi from 'joi';

import { checkAgainst } from '../../shared/contracts/parse.ts';
import { STORED_ANSWER_MS } from '../../shared/contracts/jobs.ts';
import { LOOKUPS_PER_MINUTE } from '../../shared/contracts/tenant-fields.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { pollUntil } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { LedgerRepository } from '../../shared/mongo/accounts/ledger-repository.ts';
import type { RecordStore, RequestRecord } from '../../shared/requests/record-store.ts';
import { SENT, defineEndpoint } from '../contract/endpoint.ts';
import type { QueryRule } from '../contract/endpoint.ts';
import { found } from '../contract/path-parameters.ts';
import { keepsNothing } from '../http/request-terms.ts';
import { SSE_HEADERS, openForwarder } from '../relay/answer.ts';
import type { RelayTimes } from '../relay/answer.ts';
import type { RelayHub } from '../relay/hub.ts';
import type { ReaderPlaces } from '../relay/reader-places.ts';
import { answerHead } from '../relay/sse.ts';
import { STREAM_EXAMPLE, STREAM_TEXT, chunkSchema } from './completion-schemas.ts';
import type { RestoreFromMongo } from './durable-requests.ts';

export interface FindRequestDeps {
  ledger: Pick<LedgerRepository, 'settledAt'>;
  restoreFromMongo: Pick<RestoreFromMongo, 'byId'>;
}

const HOURS_KEPT = STORED_ANSWER_MS / 3_600_000;

/** The document's words about every look-up; the first figure is the default of STREAM_RETENTION_SECONDS. */
export const LOOKUP_TEXT = `for 15 minutes after its end (${HOURS_KEPT} hours with an \`Idempotency-Key\` or asynchronously). It does not count against the limit of the key, which allows ${LOOKUPS_PER_MINUTE} look-ups a minute besides.`;

/**
 * The record that `look` finds. Throws `not_found` for an unknown id, another tenant's or one of the other mode, and
 * `gone` for a request that the ledger knows but whose answer is no longer kept.
 */
export async function findRequest(
  { ledger, restoreFromMongo }: FindRequestDeps,
  principal: Principal,
  requestId: string,
  look: () => Promise<RequestRecord | undefined>,
): Promise<RequestRecord> {
  let record = await look();
  if (record === undefined && (await restoreFromMongo.byId(principal, requestId))) record = await look();
  if (record !== undefined && !record.isGone) return record;
  if (record === undefined) found(await ledger.settledAt(principal, requestId), 'requestId');
  throw answerGone();
}

export function answerGone(): ServiceError {
  return new ServiceError('gone', 'The answer of this request is no longer kept; send a new request.');
}

const POSITION = /^\d{1,15}$/;
const POSITION_RULE = '{{#label}} must be the number of an event: a whole number from 0';
/** The number of an event as text; 0 stands for the position before the first. */
const positionSchema = Joi.string()
  .pattern(POSITION)
  .meta({ reads: { type: 'integer', minimum: 0, maximum: 999_999_999_999_999 } })
  .messages({ 'string.base': POSITION_RULE, 'string.empty': POSITION_RULE, 'string.pattern.base': POSITION_RULE });

const headerSchema = Joi.object<{ 'Last-Event-ID': string }, true>({ 'Last-Event-ID': positionSchema });

/** The number in `Last-Event-ID`; undefined: the caller sent none. Throws `invalid_request`. */
export function lastEventId(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  checkAgainst(headerSchema, { 'Last-Event-ID': header });
  return Number(header);
}

/** A worker's next text rewrites the last second that Redis lost (docs/decisions/0007-redis-data-loss.md). */
const REWRITE_MS = 1_000;

/** Tells whether a client has all events that there are or will be. `position`: the number of its last one. */
export function hasAllEvents({ state, sentSeq }: RequestRecord, position: number): boolean {
  return state === 'done' && position >= sentSeq;
}

/**
 * The record, once the stream has reached the client's position: Redis may have lost events that the client has. If it
 * does not get there, throws an error that tells the client how to go on.
 */
export async function reached(
  position: number,
  look: () => Promise<RequestRecord>,
  clock: Clock,
): Promise<RequestRecord> {
  const isKnown = ({ sentSeq, state }: RequestRecord) => position <= sentSeq || state === 'done';
  const record = await pollUntil(clock, REWRITE_MS, look, isKnown);
  const { sentSeq, state } = record;
  if (position <= sentSeq) return record;
  if (state === 'done')
    throw new ServiceError(
      'invalid_request',
      `The stream has ended with event ${sentSeq}; there is no event ${position} to go on after. Read it from the start.`,
    );
  throw new ServiceError(
    'model_unavailable',
    `The stream has ${sentSeq} events so far, and none after event ${position}; send the same call again shortly.`,
    { retryAfterSeconds: 1 },
  );
}

const resumeQuerySchema = Joi.object<{ starting_after?: string }, true>({
  starting_after: positionSchema.description(
    'The number of the last event that the client has; `Last-Event-ID` wins over it.',
  ),
}).unknown();

const resumeQuery: QueryRule<{ starting_after?: string }> = {
  schemas: [resumeQuerySchema],
  read(query) {
    checkAgainst(resumeQuerySchema, query);
    return query;
  },
};

/**
 * The number of the last event that the client has; 0 if it names none. Throws `invalid_request`. The header wins
 * because it is newer: an SSE client that was cut off repeats its call to the same address with the header added.
 */
function positionOf({ starting_after: given }: { starting_after?: string }, header: string | undefined): number {
  return lastEventId(header) ?? Number(given ?? 0);
}

export interface ResumeDeps extends FindRequestDeps {
  records: RecordStore;
  hub: RelayHub;
  readerPlaces: ReaderPlaces;
  requestTimeoutMs: number;
  /** Aborts when this ingress can no longer wait for answers. */
  stopping: AbortSignal;
  clock: Clock;
  relayTimes: RelayTimes;
}

async function read(
  res: Response,
  principal: Principal,
  { requestId, position }: { requestId: string; position: number },
  deps: ResumeDeps,
): Promise<void> {
  const { records, hub, requestTimeoutMs, stopping, clock, relayTimes } = deps;
  const { shard } = principal;
  await hub.ensureShard(shard);
  const channel = hub.channelOf(shard);
  const attach = () => records.attach(principal, requestId, res.req.method === 'HEAD' ? '' : channel);
  const record = await reached(position, () => findRequest(deps, principal, requestId, attach), clock);
  if (hasAllEvents(record, position)) {
    res.status(204).end();
    return;
  }
  // A HEAD call waits for no event and reads none.
  if (res.req.method === 'HEAD' && record.state !== 'done') {
    res.writeHead(200, SSE_HEADERS).end();
    return;
  }
  const head = answerHead(record);
  if (head.kind !== undefined)
    throw new ServiceError('invalid_request', `This request has no stream; GET /chat/${requestId} has its answer.`);
  const options = {
    shard,
    requestId,
    existing: true,
    fromSeq: position + 1,
    timeoutMs: requestTimeoutMs,
    stopping,
    place: () => records.place(principal, requestId),
    ...relayTimes,
  };
  const forwarder = openForwarder(hub, res, options);
  if (keepsNothing(principal)) hub.deleteWhenRead(requestId);
  await forwarder.forward(head);
}

/** The ways in which a request without a stream can end: with the error that `POST /chat/stream` gives. */
const ENDS_WITHOUT_TEXT = [
  'context_length_exceeded',
  'content_policy_violation',
  'insufficient_credits',
  'budget_exceeded',
  'tpm_exceeded',
  'conflict',
  'timeout',
] as const;

/** Sends the same bytes again, from any event, on any ingress (docs/spec.md#resume). */
export const resumeChatStream = defineEndpoint({
  method: 'GET',
  path: '/chat/stream/:requestId',
  scopes: ['chat.stream'],
  counts: 'lookup',
  tag: 'Chat',
  summary: 'Resume a stream from any event',
  description: `The same bytes as the first time, while the request is in progress and ${LOOKUP_TEXT}`,
  query: resumeQuery,
  headers: ['Last-Event-ID'],
  answers: {
    200: { description: `The rest of the stream. ${STREAM_TEXT}`, content: { 'text/event-stream': chunkSchema } },
    204: { description: 'The client has received the whole stream.' },
  },
  errors: [...ENDS_WITHOUT_TEXT, 'gone'],
  examples: {
    whole: { summary: 'From the start', status: 200, answer: STREAM_EXAMPLE },
    rest: {
      summary: 'Behind the first event',
      query: { starting_after: 1 },
      status: 200,
      answer: STREAM_EXAMPLE.slice(STREAM_EXAMPLE.indexOf('id: 2')),
    },
  },
  async handle({ req, res, principal, params, query }, deps: ResumeDeps) {
    const { requestId } = params;
    const position = positionOf(query, req.get('Last-Event-ID'));
    const leave = deps.readerPlaces.enter(requestId, principal);
    try {
      await read(res, principal, { requestId, position }, deps);
    } finally {
      leave();
    }
    return SENT;
  },
});
