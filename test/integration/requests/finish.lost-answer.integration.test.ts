import { afterAll, beforeAll, expect, it } from '@jest/globals';

import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import type { AccountStore } from '../../../shared/redis/stores/account-store.ts';
import { createOutbox, isReadable } from '../../../shared/requests/outbox.ts';
import type { Outbox } from '../../../shared/requests/outbox.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import type { RequestStore } from '../../../shared/requests/delivery-store.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { endingOf, LEASE_MS, needs, openRequestLab, RATE, SHARD } from '../../support/request-lab.ts';
import type { LabRequest, RequestLab } from '../../support/request-lab.ts';
import { redisUrl } from '../../support/stores.ts';

const TOKENS = { prompt: 12, completion: 30 };

let lab: RequestLab;
let proxy: TcpProxy;
let requests: RequestStore;
let outbox: Outbox;
let accounts: AccountStore;
beforeAll(async () => {
  lab = await openRequestLab();
  proxy = await openTcpProxy(redisUrl());
  const client = await lab.connect(proxy.url);
  requests = createRequestStore(client, lab.keyspace, { leaseMs: LEASE_MS, disconnectGraceMs: 30_000 });
  outbox = createOutbox(client, lab.keyspace);
  accounts = createAccountStore(client, lab.keyspace);
  await warmUp();
});
afterAll(async () => {
  await lab.close();
  await proxy.close();
});

/** Redis knows every script after this, so that the first answer to each is the command's own. */
async function warmUp(): Promise<void> {
  const request = await lab.admit();
  await requests.claim(request.ref(1));
  await requests.append(request.ref(1), 1, ['a']);
  await requests.renew(request.ref(1), needs(0));
  await requests.finish(request.ref(1), 1, endingOf(request, '', TOKENS));
  await settled(request);
}

/** What a consumer does with a request's record, the book itself left out. */
async function settled({ principal, requestId }: LabRequest): Promise<void> {
  await accounts.publishBalance(SHARD, principal.tenantId, book(2, 1_000), [requestId]);
  const entries = await outbox.read(SHARD, 'new', 10);
  await outbox.acknowledge(SHARD, entries.filter(isReadable));
}

const book = (version: number, credits: number) => ({ version, balanceMicro: credits * RATE, tokensByMonth: {} });

/** The answer is lost on the way, and the client sends the command again by itself. */
async function losingTheAnswer<T>(command: () => Promise<T>): Promise<T> {
  const lost = proxy.cutNextReply();
  const answer = command();
  await lost;
  return answer;
}

it('finishes and charges once', async () => {
  const request = await lab.admit();
  await lab.run(request, 1);
  const length = await lab.outbox.length(SHARD);

  expect(await losingTheAnswer(() => requests.finish(request.ref(1), 0, endingOf(request, 'Hi', TOKENS)))).toBe(true);

  expect(await lab.outbox.length(SHARD)).toBe(length + 1);
  expect(await lab.figures(request.principal)).toMatchObject({ pendingMicro: 42 * RATE, heldMicro: 0 });
  expect(await lab.redis.get(lab.keys.answer(request.requestId))).toMatch(/^3\n/);
});

it('reads a record whose answer is lost with the answer that comes', async () => {
  await outbox.read(SHARD, 'new', 100);
  const request = await lab.admit();
  await lab.run(request, 1);
  await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hi', TOKENS));
  const idsOf = (entries: Awaited<ReturnType<typeof outbox.read>>) => entries.map(({ record }) => record?.requestId);

  expect(idsOf(await losingTheAnswer(() => outbox.read(SHARD, 'new', 100)))).toEqual([request.requestId]);

  expect(await outbox.read(SHARD, 'new', 100)).toEqual([]);
  expect(idsOf(await outbox.read(SHARD, 'redelivered', 100))).toContain(request.requestId);
});
