import type { Response } from 'express';

import type { Principal } from '../../shared/domain/principal.ts';
import type { StreamEntry } from '../../shared/contracts/events.ts';
import type { RecordStore, RequestRecord } from '../../shared/requests/record-store.ts';
import type { StreamReader } from '../../shared/requests/answers.ts';
import { pollUntil } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { idempotencyKeyOf } from '../http/request-terms.ts';
import type { IntentStore } from './durable-requests.ts';
import { REQUEST_EXAMPLE, requestSchema, requestJson } from './chat-request-resource.ts';
import { answerGone, findRequest, LOOKUP_TEXT, resumeChatStream } from './resume.ts';
import type { FindRequestDeps } from './resume.ts';
import { defineEndpoint, SENT, json } from '../contract/endpoint.ts';
import type { Sent } from '../contract/endpoint.ts';
import { sendJson } from '../relay/paced-writer.ts';
import { answerHead, outcomeOf } from '../relay/sse.ts';
import type { ReaderPlaces } from '../relay/reader-places.ts';
import { DRAIN_MS } from '../relay/answer.ts';
import type { RelayTimes } from '../relay/answer.ts';

export interface ChatRequestsDeps extends FindRequestDeps {
  records: RecordStore;
  streams: StreamReader;
  intentStore: Pick<IntentStore, 'conclude'>;
  readerPlaces: ReaderPlaces;
  clock: Clock;
  relayTimes: RelayTimes;
}

/** A worker learns of a cancellation at once, or when it next renews its lease; the answer waits that long. */
const CANCEL_WAIT_MS = 4_000;

/** Sends a request as it is. Many vectors in it are a download: their memory is bounded while nobody reads them. */
async function sendRequest(
  res: Response,
  principal: Principal,
  { record, entries }: { record: RequestRecord; entries: readonly StreamEntry[] },
  { records, ledger, readerPlaces, relayTimes }: ChatRequestsDeps,
): Promise<Sent> {
  const { requestId, state } = record;
  const outcome = outcomeOf(answerHead(record), entries);
  if (outcome !== undefined && 'responseJson' in outcome && typeof outcome.responseJson !== 'string')
    readerPlaces.enterDownload(res, principal);
  const settledAt = state === 'done' ? await ledger.settledAt(principal, requestId).catch(() => undefined) : undefined;
  const place = state === 'accepted' ? await records.place(principal, requestId) : undefined;
  const json = requestJson(record, entries.at(-1)?.terminal, outcome, { settledAt, place });
  await sendJson(res, json, relayTimes.drainMs ?? DRAIN_MS);
  return SENT;
}

/** The record is an old one if the request ended between the reading of its record and that of its events. */
function hasEndedMeanwhile({ state }: RequestRecord, entries: readonly StreamEntry[]): boolean {
  return state !== 'done' && entries.at(-1)?.terminal !== undefined;
}

const getChatRequest = defineEndpoint({
  method: 'GET',
  path: '/chat/:requestId',
  scopes: ['chat', 'chat.stream'],
  counts: 'lookup',
  tag: 'Chat',
  summary: 'Retrieve a chat request',
  description: `With its answer, ${LOOKUP_TEXT}`,
  answers: { 200: json('The request.', requestSchema) },
  errors: ['gone'],
  examples: { ended: { status: 200, answer: REQUEST_EXAMPLE } },
  async handle({ res, principal, params }, deps: ChatRequestsDeps) {
    const { requestId } = params;
    const find = () => findRequest(deps, principal, requestId, () => deps.records.find(principal, requestId));
    let record = await find();
    const read = () => deps.streams.readFrom(principal.shard, requestId, 1);
    let entries = await read();
    if (hasEndedMeanwhile(record, entries)) record = await find();
    if (record.state === 'done' && entries.length === 0) {
      // Redis has let them go since their record was read, or before it.
      if (await deps.restoreFromMongo.byId(principal, requestId)) entries = await read();
      if (entries.length === 0) throw answerGone();
    }
    return sendRequest(res, principal, { record, entries }, deps);
  },
});

const cancelChatRequest = defineEndpoint({
  method: 'POST',
  path: '/chat/:requestId/cancel',
  scopes: ['chat', 'chat.stream'],
  counts: 'lookup',
  tag: 'Chat',
  summary: 'Cancel a chat request',
  description:
    'A request that has ended stays as it is. One that has text ends with `finish_reason: "cancelled"` and is charged for what was generated; one without text is not charged, and a caller who waits for it gets 409 `conflict`.',
  answers: { 200: json('The request.', requestSchema) },
  errors: ['gone'],
  examples: { ended: { summary: 'A request that has ended', status: 200, answer: REQUEST_EXAMPLE } },
  async handle({ req, res, principal, params }, deps: ChatRequestsDeps) {
    const { requestId } = params;
    // Cancelling can be repeated without a key. A malformed one is the caller's fault here as on any POST.
    idempotencyKeyOf(req);
    let record = await findRequest(deps, principal, requestId, async () => {
      const known = await deps.records.cancel(principal, requestId);
      if (!known) return undefined;
      const find = () => deps.records.find(principal, requestId);
      const ended = await pollUntil(
        deps.clock,
        CANCEL_WAIT_MS,
        find,
        (one) => one === undefined || one.state === 'done',
      );
      // The canceller gets the final status even with zero retention.
      return ended && { ...ended, isGone: false };
    });
    // Otherwise a Redis that comes back without the cancelling would run the request again.
    const concludeCancelled = () => {
      if (record.status === 'cancelled') deps.intentStore.conclude(principal, requestId);
    };
    concludeCancelled();
    const entries = await deps.streams.readFrom(principal.shard, requestId, 1);
    if (hasEndedMeanwhile(record, entries)) {
      record = (await deps.records.find(principal, requestId)) ?? record;
      concludeCancelled();
    }
    return sendRequest(res, principal, { record, entries }, deps);
  },
});

/** The look-up and the cancelling of a chat request (docs/spec.md#look-up-and-cancelling). */
export const chatRequestsEndpoints = { resumeChatStream, getChatRequest, cancelChatRequest };
