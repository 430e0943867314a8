import { beforeEach, expect, it } from '@jest/globals';

import { createOutboxSearch } from '../../../shared/requests/outbox.ts';
import { createRequestEraser } from '../../../shared/requests/request-eraser.ts';
import type { RequestEraser } from '../../../shared/requests/request-eraser.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { endingOf, openRequestLab, RETENTION_MS, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { redisUrl } from '../../support/stores.ts';
import { useEach } from '../../support/use-service.ts';

const IDEMPOTENCY = { name: 'a-name', fingerprint: 'of-a-body' };

const lab = useEach('lab', openRequestLab);
let traces: RequestEraser;
beforeEach(() => {
  traces = createRequestEraser(lab.redis, lab.keyspace);
});

async function end(request: LabRequest): Promise<void> {
  await lab.run(request, 1);
  await lab.requests.append(request.ref(1), 1, ['Hel']);
  await lab.requests.finish(request.ref(1), 1, endingOf(request, 'lo', { prompt: 1, completion: 2 }));
}

/** Whenever it was accepted. */
const ANY_SEQ = Number.MAX_SAFE_INTEGER;

const erase = ({ requestId, principal }: LabRequest, upToSeq = ANY_SEQ) =>
  traces.erase(SHARD, principal, { requestId }, upToSeq);

it('lists the requests of an entity from their admission on, and of no other', async () => {
  const principal = await lab.tenant();
  const first = await lab.admit({ principal, entityHash: 'one' });
  await lab.admit({ principal, entityHash: 'another' });
  await lab.admit({ principal });
  const second = await lab.admit({ principal, entityHash: 'one' });

  const listed = await traces.ofEntity(SHARD, principal.tenantId, 'one');
  expect(listed.sort()).toEqual([first.requestId, second.requestId].sort());
  expect(await lab.redis.pttl(lab.keys.entityRequests(principal.tenantId, 'one'))).toBeGreaterThan(0);

  await traces.unlist(SHARD, principal.tenantId, 'one', [first.requestId]);
  expect(await traces.ofEntity(SHARD, principal.tenantId, 'one')).toEqual([second.requestId]);
});

it('takes an erased request out of the tries of its call', async () => {
  const principal = await lab.tenant();
  const attempt = { name: 'a-call', fingerprint: 'of-a-body', isRetry: false };
  const [kept, erased] = [await lab.admit({ principal, attempt }), await lab.admit({ principal, attempt })];
  await end(erased);
  await end(kept);

  await erase(erased);
  expect(await lab.redis.get(lab.keys.retries('a-call'))).toBe(kept.requestId);
  expect(await lab.redis.pttl(lab.keys.retries('a-call'))).toBeGreaterThan(0);

  await erase(kept);
  expect(await lab.redis.exists(lab.keys.retries('a-call'))).toBe(0);
});

it('leaves a tombstone of an ended request, and of its money everything', async () => {
  const request = await lab.admit({ idempotency: IDEMPOTENCY });
  await end(request);
  const { requestId, principal } = request;
  const before = await lab.figures(principal);

  expect(await erase(request)).toBe('erased');

  expect(await lab.redis.hgetall(lab.keys.record(requestId))).toEqual({ state: 'void', erased: '1' });
  expect(await lab.redis.pttl(lab.keys.record(requestId))).toBeGreaterThan(0);
  const { body, stream, answer, idempotency } = lab.keys;
  expect(await lab.redis.exists(body(requestId), stream(requestId), answer(requestId), idempotency('a-name'))).toBe(0);
  expect(await lab.figures(principal)).toEqual(before);
  expect(await lab.outbox.length(SHARD)).toBe(1);
  expect(await erase(request)).toBe('nothing');
});

it('lets nothing of an erased request come back', async () => {
  const request = await lab.admit();
  await end(request);
  await erase(request);

  await expect(lab.run(request, 2)).rejects.toThrow('dropped');
  expect(await lab.requests.append(request.ref(1), 2, ['late'])).toBe('superseded');
  expect(await lab.requests.finish(request.ref(1), 1, endingOf(request, 'x', { prompt: 1, completion: 1 }))).toBe(
    false,
  );
  // A body that was on its way when the request was cancelled.
  await lab.redis.set(lab.keys.body(request.requestId), 'late');
  expect(await erase(request)).toBe('erased');
  expect(await lab.redis.exists(lab.keys.body(request.requestId))).toBe(0);
});

it('touches no request that runs, was accepted later, is another tenant’s or of the other mode', async () => {
  const [running, later] = [await lab.admit(), await lab.admit()];
  await lab.run(running, 1);
  await end(later);
  const before = await lab.snapshot();

  expect(await erase(running)).toBe('busy');
  expect(await erase(later, later.admission.seq - 1)).toBe('later');
  expect(
    await traces.erase(SHARD, { tenantId: 'ten_other', mode: 'any' }, { requestId: later.requestId }, ANY_SEQ),
  ).toBe('foreign');
  const asTest = { tenantId: later.principal.tenantId, mode: 'test' } as const;
  expect(await traces.erase(SHARD, asTest, { requestId: later.requestId }, ANY_SEQ)).toBe('foreign');

  expect(await lab.snapshot()).toEqual(before);
  expect(await erase(later, later.admission.seq)).toBe('erased');
});

it('leaves the tombstone of another tenant as it is: whoever has the end of its request may put it back', async () => {
  const [mine, other] = [await lab.tenant(), await lab.tenant()];
  await lab.admissions.void('req_lost', mine);
  const before = await lab.redis.hgetall(lab.keys.record('req_lost'));

  expect(await traces.erase(SHARD, other, { requestId: 'req_lost' }, ANY_SEQ)).toBe('foreign');

  expect(before).toMatchObject({ state: 'void', voidUnconfirmed: '1' });
  expect(await lab.redis.hgetall(lab.keys.record('req_lost'))).toEqual(before);
});

it('frees an Idempotency-Key that only MongoDB knew, unless it stands for another request', async () => {
  const request = await lab.admit();
  await end(request);
  const { idempotency } = lab.keys;
  await lab.redis.set(idempotency('mine'), `${request.requestId} of-a-body`);
  await lab.redis.set(idempotency('taken'), 'req_other of-a-body');

  for (const name of ['mine', 'taken'])
    await traces.erase(SHARD, request.principal, { requestId: request.requestId, name }, ANY_SEQ);

  expect(await lab.redis.exists(idempotency('mine'))).toBe(0);
  expect(await lab.redis.exists(idempotency('taken'))).toBe(1);
});

async function idsOf(batches: AsyncIterable<string[]>): Promise<string[]> {
  const found = new Set<string>();
  for await (const ids of batches) for (const id of ids) found.add(id);
  return [...found].sort();
}

it('finds what a tenant’s requests have left, its open ones, those of a shard, and settlements that wait', async () => {
  const principal = await lab.tenant();
  const [ended, open, cancelled, kept] = await Promise.all([
    lab.admit({ principal }),
    lab.admit({ principal }),
    lab.admit({ principal }),
    // A day, as a request that is asked for again.
    lab.admit({ principal, retentionMs: 86_400_000 }),
  ]);
  const foreign = await lab.admit({ principal: await lab.tenant() });
  await end(ended);
  await lab.run(kept, 1);
  const endingOfKept = { ...endingOf(kept, 'lo', { prompt: 1, completion: 2 }), retentionMs: 86_400_000 };
  await lab.requests.finish(kept.ref(1), 0, endingOfKept);
  const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  await records.cancel({ ...principal, shard: SHARD }, cancelled.requestId);
  // Whose tombstone this is nobody knows, so no deletion may harden it.
  await lab.redis.hset(lab.keys.record('req_nobodys'), 'state', 'void', 'voidUnconfirmed', '1');

  const left = [ended, cancelled, kept].map(({ requestId }) => requestId);
  expect(await idsOf(traces.left(SHARD, principal.tenantId))).toEqual(left.sort());
  expect(await traces.openOf(SHARD, principal.tenantId)).toEqual([open.requestId]);
  expect(await idsOf(traces.open(SHARD))).toEqual([open.requestId, foreign.requestId].sort());
  for (const list of await lab.redis.keys(`${lab.keys.left(principal.tenantId, 0).slice(0, -1)}*`))
    expect(await lab.redis.pttl(list)).toBeGreaterThan(RETENTION_MS);

  const outbox = createOutboxSearch(lab.redis, lab.keyspace);
  expect(await outbox.find(SHARD, ({ requestId }) => requestId === ended.requestId)).toMatch(/^\d+-\d+$/);
  expect(await outbox.find(SHARD, ({ entityId }) => entityId !== undefined)).toBeUndefined();
});

it('looks for a tenant’s requests at the same cost, however many others have', async () => {
  const [mine, other] = [await lab.tenant(), await lab.tenant()];
  await end(await lab.admit({ principal: mine }));
  const meter = await openTcpProxy(redisUrl());
  const metered = createRequestEraser(await lab.connect(meter.url), lab.keyspace);
  const costOf = async () => {
    const before = meter.commands();
    const found = await idsOf(metered.left(SHARD, mine.tenantId));
    return { found: found.length, commands: meter.commands() - before };
  };
  // The first call opens the connection.
  await costOf();
  const alone = await costOf();

  for (let count = 0; count < 50; count += 1) await end(await lab.admit({ principal: other }));

  expect(alone.found).toBe(1);
  expect(await costOf()).toEqual(alone);
  await meter.close();
});

it('rewrites dead letters, be it a record or not', async () => {
  const outbox = createOutboxSearch(lab.redis, lab.keyspace);
  for (const text of ['no record of pupil', 'another']) await lab.redis.xadd(lab.keys.deadLetters, '*', 's', text);

  const hide = (raw: string) => (raw.includes('pupil') ? raw.replaceAll('pupil', 'nobody') : undefined);
  expect(await outbox.rewriteDeadLetters(SHARD, hide)).toBe(1);

  const left = await lab.redis.xrange(lab.keys.deadLetters, '-', '+');
  expect(left.map(([, fields]) => fields[1])).toEqual(['another', 'no record of nobody']);
});
