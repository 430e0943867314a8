import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

import { expect, it } from '@jest/globals';
import type { Request, Response } from 'express';

import { createAccept } from '../../../../api/chat/accept.ts';
import type { AcceptDeps, AcceptRoute } from '../../../../api/chat/accept.ts';
import { assignRequestId, contextOf } from '../../../../api/http/request-context.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';
import { principalOf } from '../../../support/request-lab.ts';

const BODY = {
  request: { messages: [{ role: 'user' as const, content: 'Hi' }], maxTokens: 10, jsonMode: false },
  ignoredFields: [],
};
const AWAY = new ServiceError('model_unavailable', 'away');
const TIMES = { ordinaryMs: 1, storedAnswerMs: 2 };

interface Stores {
  /** What MongoDB and the queue say; they take everything by default. */
  storeBeforeAnswer?: () => Promise<void>;
  enqueue?: () => Promise<void>;
  /** Happens while the request is admitted. */
  meanwhile?: (res: Response) => void;
  /** The tenant's own retention. */
  retentionSeconds?: number;
}

/** Accepts a request that admission has let in, and lists what is done about it. */
async function acceptWith(stores: Stores, route: Partial<AcceptRoute>) {
  const done: string[] = [];
  const note = (what: string) => () => {
    done.push(what);
    return Promise.resolve();
  };
  const req = new IncomingMessage(new Socket());
  // Express adds methods that nothing here uses.
  const res = new ServerResponse(req) as Response;
  assignRequestId(req as Request, res);
  contextOf(res).principal = principalOf(
    stores.retentionSeconds === undefined ? {} : { retentionSeconds: stores.retentionSeconds },
  );
  let lose = () => undefined as unknown;
  // Only what an admitted request needs.
  const deps = {
    routing: { current: () => ({ tiers: {}, models: new Map() }) },
    onEarlyEnd: () => undefined,
    admit: (call: { requestId: string }) => {
      stores.meanwhile?.(res);
      const envelope = { ...call, acceptedAt: 0, tier: 'mobius' };
      return Promise.resolve({ kind: 'admitted', figures: { verdict: 'admitted' }, envelope, isQueued: false });
    },
    enqueuer: { enqueue: stores.enqueue ?? note('enqueued'), voidLater: note('taken back') },
    hub: {
      hasShard: () => true,
      channelOf: () => 'channel',
      onLost: (_id: string, act: () => void) => (lose = act),
      deleteWhenRead: note('wiped'),
    },
    records: { detach: note('detached') },
    restoreFromMongo: { byName: () => Promise.resolve() },
    intentStore: {
      storeBeforeAnswer: stores.storeBeforeAnswer ?? note('stored'),
      storeInBackground: note('stored in background'),
    },
    retention: TIMES,
    follow: () => undefined,
    events: { emit: () => undefined },
  } as unknown as AcceptDeps;
  const relay = { close: note('relay closed'), abandon: note('relay abandoned') };
  const accepted = createAccept(deps)(res, { endpoint: 'chat', stream: false, ...route }, BODY, () => relay);
  return { done, outcome: await accepted.catch((error: unknown) => error), lose: () => lose() };
}

/** As Node.js does when a client's connection ends. */
const leave = (res: Response) => Object.defineProperty(res, 'closed', { value: true });

it('a client that leaves while its request is admitted is detached: nobody could do that before', async () => {
  const { done } = await acceptWith({ meanwhile: leave }, {});

  expect(done).toEqual(['detached', 'enqueued']);
});

it('a client that does not wait for its answer is not detached', async () => {
  const { done } = await acceptWith({ meanwhile: leave }, { async: true });

  expect(done).toEqual(['stored', 'enqueued']);
});

it('a request that cannot be put into line leaves no relay', async () => {
  const { done, outcome } = await acceptWith({ enqueue: () => Promise.reject(AWAY) }, { idempotencyKey: 'order-1' });

  expect(outcome).toBe(AWAY);
  expect(done).toEqual(['stored in background', 'relay closed']);
});

it('a request whose caller cannot be promised anything is taken back', async () => {
  const { done, outcome } = await acceptWith({ storeBeforeAnswer: () => Promise.reject(AWAY) }, { async: true });

  expect(outcome).toBe(AWAY);
  expect(done).toEqual(['taken back', 'relay closed']);
});

it('a request that Redis has lost is taken back: nothing of it can be asked for later', async () => {
  const { done, lose } = await acceptWith({}, {});

  lose();

  expect(done).toEqual(['enqueued', 'taken back']);
});

it.each([
  ['under an Idempotency-Key', {}, { idempotencyKey: 'order-1' }],
  ['that is asynchronous', {}, { async: true }],
  ['whose answer its tenant keeps for longer', { retentionSeconds: 86_400 }, {}],
])('a request that Redis has lost is not taken back %s', async (_name, stores, route) => {
  const { done, lose } = await acceptWith(stores, route);

  lose();

  expect(done).toContain('enqueued');
  expect(done).not.toContain('taken back');
});
