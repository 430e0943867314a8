import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';

import { createAccept } from '../../../api/chat/accept.ts';
import type { AdmissionEvents, Relay } from '../../../api/chat/accept.ts';
import type { ParsedChatBody } from '../../../api/chat/chat-body.ts';
import { comparable, idempotencyOf } from '../../../api/http/request-terms.ts';
import { assignRequestId, contextOf } from '../../../api/http/request-context.ts';
import { createPseudonyms } from '../../../shared/domain/pseudonyms.ts';
import { createAdmission } from '../../../shared/requests/admission.ts';
import type { AdmissionDeps } from '../../../shared/requests/admission.ts';
import { createBatchQueue } from '../../../shared/requests/queue-store.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { LOST } from '../../../shared/contracts/events.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { createEventBus } from '../../../shared/lifecycle/event-bus.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openRelayLab } from '../../support/relay-lab.ts';
import { RETENTION_MS } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const BODY: ParsedChatBody = {
  request: { messages: [{ role: 'user', content: 'Hi' }], maxTokens: 10, jsonMode: false },
  ignoredFields: [],
};
const KEY = 'order-1';

describe('a call that repeats an Idempotency-Key', () => {
  const relay = useStarted('relay', openRelayLab);

  function responseTo(principal: Principal): Response {
    const req = new IncomingMessage(new Socket());
    // Express adds methods that nothing here uses.
    const res = new ServerResponse(req) as Response;
    assignRequestId(req as Request, res);
    contextOf(res).principal = principal;
    return res;
  }

  /** An ingress's way into the queue; `joining` happens between the answer "there is a request" and the look at it. */
  function acceptWith(joining: (requestId: string) => Promise<unknown>) {
    const { lab, hub } = relay;
    const nobody = () => Promise.reject(new Error('Nobody asks for this.'));
    const store: AdmissionDeps['store'] = {
      ...lab.admissions,
      async admit(...call) {
        const admission = await lab.admissions.admit(...call);
        if (admission.joined !== undefined) await joining(admission.joined.requestId);
        return admission;
      },
    };
    const routing = { current: () => ({ tiers: {}, models: new Map() }) } as unknown as AdmissionDeps['routing'];
    const admit = createAdmission({
      ...{ store, accountStore: lab.accounts, isFull: () => false, voidLater: () => undefined },
      accounts: { read: nobody } as unknown as AdmissionDeps['accounts'],
      routing,
      pseudonyms: createPseudonyms(Buffer.alloc(32)),
      ...{ clock: systemClock, log: createRecordingLog() },
    });
    return createAccept({
      ...{ admit, routing, hub, enqueuer: { enqueue: nobody, voidLater: () => undefined, idle: nobody } },
      records: createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS }),
      restoreFromMongo: { byId: () => Promise.resolve(false), byName: () => Promise.resolve() },
      intentStore: {
        storeBeforeAnswer: nobody,
        waitUntilStored: nobody,
        storeInBackground: () => undefined,
        conclude: () => undefined,
      },
      batchQueue: createBatchQueue(lab.redis, lab.keyspace),
      retention: { ordinaryMs: RETENTION_MS, storedAnswerMs: RETENTION_MS },
      follow: () => undefined,
      onEarlyEnd: () => undefined,
      events: createEventBus<AdmissionEvents>(() => undefined),
    });
  }

  /** A request that waits under the key; then the second call. */
  async function repeat(meanwhile: (principal: Principal, requestId: string) => Promise<unknown>) {
    const principal = await relay.lab.tenant();
    const idempotency = await idempotencyOf(principal, 'chat', KEY, comparable(BODY.request));
    const first = await relay.lab.admit({ principal, idempotency });
    const res = responseTo(principal);
    const accept = acceptWith((requestId) => meanwhile(principal, requestId));
    const opened: Relay = { close: () => undefined, abandon: () => undefined };
    const route = { endpoint: 'chat', stream: false, idempotencyKey: KEY } as const;
    const second = accept(res, route, BODY, () => opened);
    return { first: first.requestId, own: contextOf(res).requestId, second };
  }

  it('runs as a new request where the first one is taken back just then', async () => {
    const { own, second } = await repeat((principal, requestId) =>
      relay.lab.admissions.void(requestId, principal, LOST),
    );

    expect(await second).toMatchObject({ head: { requestId: own }, replayed: false });
    expect(await relay.lab.redis.hget(relay.lab.keys.record(own), 'state')).toBe('accepted');
  });

  it('joins the one that has taken its place by then', async () => {
    let later = '';
    const { second } = await repeat(async (principal, requestId) => {
      if (later !== '') return;
      await relay.lab.admissions.void(requestId, principal, LOST);
      const idempotency = await idempotencyOf(principal, 'chat', KEY, comparable(BODY.request));
      later = (await relay.lab.admit({ principal, idempotency })).requestId;
    });

    expect(await second).toMatchObject({ head: { requestId: later }, replayed: true });
  });

  it('is 410 where the key still stands for a request of which nothing is left', async () => {
    const { second } = await repeat((_principal, requestId) => relay.lab.redis.del(relay.lab.keys.record(requestId)));

    await expect(second).rejects.toMatchObject({ code: 'gone' });
  });
});
