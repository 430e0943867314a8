import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

import { expect, it } from '@jest/globals';
import type { Request, Response } from 'express';

import { chatRequestsEndpoints } from '../../../api/chat/chat-requests-endpoints.ts';
import type { ChatRequestsDeps } from '../../../api/chat/chat-requests-endpoints.ts';
import { createReaderPlaces } from '../../../api/relay/reader-places.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createStreamReader } from '../../../shared/requests/answers.ts';
import { endingOf, openRequestLab, RETENTION_MS } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openRequestLab);

/** The endpoints' stores, where `meanwhile` happens between the reading of a record and that of its events. */
function depsWith(meanwhile: () => Promise<unknown>): ChatRequestsDeps {
  const streams = createStreamReader(lab.redis, lab.keyspace);
  let now = 0;
  return {
    records: createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS }),
    streams: {
      async readFrom(...place) {
        await meanwhile();
        return streams.readFrom(...place);
      },
    },
    ledger: { settledAt: () => Promise.resolve(undefined) },
    restoreFromMongo: { byId: () => Promise.resolve(false) },
    intentStore: { conclude: () => undefined },
    // Who cancels waits no longer than for one look.
    clock: { now: () => (now += 10_000) },
    readerPlaces: createReaderPlaces(),
    relayTimes: {},
  };
}

/** What an endpoint answers about a request that ends while it looks. */
async function answerOf(name: 'getChatRequest' | 'cancelChatRequest', request: LabRequest) {
  const { requestId, principal } = request;
  const { tenantId, mode, keyId: id } = principal;
  const deps = depsWith(() =>
    lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hi', { prompt: 1, completion: 1 })),
  );
  // Of what Express adds, nothing else is used here.
  const more = { params: { requestId }, get: () => undefined };
  const req = Object.assign(new IncomingMessage(new Socket()), more) as unknown as Request;
  let answered: unknown;
  const end = (text: string) => (answered = JSON.parse(text));
  const res = Object.assign(new ServerResponse(req), { end }) as unknown as Response;
  await chatRequestsEndpoints[name].handle(
    { req, res, requestId, principal, actor: { tenantId, mode, id, requestId } },
    deps,
  );
  return answered;
}

it.each(['getChatRequest', 'cancelChatRequest'] as const)(
  'a request that ends while it is looked up has ended with its answer: %s',
  async (name) => {
    const request = await lab.admit();
    await lab.run(request, 1);

    expect(await answerOf(name, request)).toMatchObject({
      status: 'completed',
      timeline: { finished_at: expect.any(Number) },
      response: { choices: [{ message: { content: 'Hi' } }] },
      usage: { total_tokens: 2 },
    });
  },
);
