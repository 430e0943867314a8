import type { Response } from 'express';
import Joi from 'joi';

import { checkAgainst } from '../../../shared/contracts/parse.ts';
import type { Principal } from '../../../shared/domain/keys/principal.ts';
import type { RecordStore } from '../../../shared/infra/redis/requests/record-store.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { defineEndpoint, SENT } from '../../contract/define-endpoint.ts';
import type { QueryRule } from '../../contract/operation.ts';
import { keepsNothing } from '../../admission/retention.ts';
import { answerHead } from '../../relay/answer.ts';
import { openForwarder, SSE_HEADERS } from '../../relay/forward.ts';
import type { RelayTimes } from '../../relay/forward.ts';
import type { RelayHub } from '../../relay/hub.ts';
import type { ReaderPlaces } from '../../relay/reader-places.ts';
import { chunkSchema, STREAM_EXAMPLE, STREAM_TEXT } from './completion-schemas.ts';
import { findRequest, LOOKUP_TEXT } from './find-request.ts';
import type { FindRequestDeps } from './find-request.ts';
import { hasAllEvents, lastEventId, positionSchema, reached } from './stream-position.ts';

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
  records: Pick<RecordStore, 'attach' | 'place'>;
  hub: RelayHub;
  readerPlaces: ReaderPlaces;
  requestTimeoutMs: number;
  clock: Clock;
  relayTimes: RelayTimes;
}

async function read(
  res: Response,
  principal: Principal,
  { requestId, position }: { requestId: string; position: number },
  deps: ResumeDeps,
): Promise<void> {
  const { records, hub, requestTimeoutMs, clock, relayTimes } = deps;
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
  const options = {
    shard,
    requestId,
    existing: true,
    fromSeq: position + 1,
    timeoutMs: requestTimeoutMs,
    place: () => records.place(principal, requestId),
    ...relayTimes,
  };
  const forwarder = openForwarder(hub, res, options);
  if (keepsNothing(principal)) hub.wipeAtEnd(requestId);
  await forwarder.forward(answerHead(record));
}

/** How a request without a stream can end: with the error that `POST /chat/stream` gives. */
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
    200: {
      description: `The rest of the stream. ${STREAM_TEXT}`,
      content: { 'text/event-stream': chunkSchema },
    },
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
