import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';

import type { Principal } from '../../shared/domain/keys/principal.ts';
import { dayOf, monthOf } from '../../shared/domain/pricing/pricing.ts';
import { createRecordStore } from '../../shared/infra/redis/requests/record-store.ts';
import type { Ending } from '../../shared/infra/redis/requests/request-store.ts';
import { createAnswerCache, createStreamReader } from '../../shared/infra/redis/requests/stored-answers.ts';
import { endingOf, openRequestLab, RATE, RETENTION_MS, SHARD } from '../support/request-lab.ts';
import type { LabRequest, RequestLab } from '../support/request-lab.ts';

// Redis has lost all of a request: its acceptance, its text, its end and its charge.

const IDEMPOTENCY = { name: 'a key', fingerprint: 'a print' };

let lab: RequestLab;
let before: Record<string, string>;
beforeAll(async () => {
  lab = await openRequestLab();
});
afterAll(async () => {
  await lab.close();
});
beforeEach(async () => {
  await lab.redis.unlink(...Object.keys(await lab.snapshot()), 'none');
});

/** What a power cut takes that comes between two writes of the append-only file. */
async function rollBack(): Promise<void> {
  await lab.redis.unlink(...Object.keys(await lab.snapshot()), 'none');
  for (const [key, value] of Object.entries(before)) await lab.redis.restore(key, 0, Buffer.from(value, 'base64'));
}

/** A request that has ended, with what its worker keeps of its end. `sent`: text that went ahead. */
async function ended(principal: Principal, sent: readonly string[] = [], more: Partial<Ending> = {}) {
  before = await lab.snapshot();
  const request = await lab.admit({ principal, entityHash: 'an entity', idempotency: IDEMPOTENCY });
  const { owner, seq, now: startedAt } = await lab.run(request, 1);
  const ref = { ...request.ref(1), owner };
  if (sent.length > 0) await lab.requests.append(ref, sent.length, sent);
  const { tier, mode, acceptedAt } = request.envelope;
  const ending: Ending = {
    ...endingOf(request, 'Hello', { prompt: 10, completion: 5 }),
    earlier: sent,
    facts: {
      tier,
      mode,
      acceptedAt,
      startedAt,
      seq,
      metadataJson: '{"a":"b"}',
      idempotency: IDEMPOTENCY,
      entityHash: 'an entity',
    },
    ...more,
  };
  expect(await lab.requests.finish(ref, sent.length, ending)).toBe(true);
  return { request, repeat: () => lab.requests.replayFinish(ref, sent.length, ending) };
}

const textOf = async ({ requestId }: LabRequest) => {
  const entries = await createStreamReader(lab.redis, lab.keyspace).readFrom(SHARD, requestId, 1);
  return entries.flatMap(({ deltas }) => deltas.map((literal) => String(JSON.parse(literal)))).join('');
};
const charges = async () => (await lab.outbox.read(SHARD, 'new', 10)).map(({ record }) => record?.requestId);

it('has its answer again, its key, its place and its list, as nothing had been lost', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { request, repeat } = await ended(principal, ['Well, ', 'yes. ']);
  const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  const found = await records.find(principal, request.requestId);
  const read = () => lab.redis.hmget(lab.keys.record(request.requestId), 'seq', 'key', 'month', 'fence', 'idempotency');
  const known = await read();
  await rollBack();

  expect(await repeat()).toBe('replayed');

  expect(await textOf(request)).toBe('Well, yes. Hello');
  // It ends and speaks anew; everything else is what it was.
  const { finishedAt, firstTokenAt, ...same } = { ...found };
  expect(await records.find(principal, request.requestId)).toMatchObject({ ...same, metadataJson: '{"a":"b"}' });
  expect([finishedAt, firstTokenAt]).toEqual([expect.any(Number), expect.any(Number)]);
  expect(await read()).toEqual(known);
  const claim = `${request.requestId} ${IDEMPOTENCY.fingerprint} ${principal.tenantId}`;
  expect(await lab.redis.get(lab.keys.idempotency(IDEMPOTENCY.name))).toBe(claim);
  const list = lab.keys.entityRequests(principal.tenantId, 'an entity');
  expect(await lab.redis.zrange(list, '0', '-1')).toEqual([request.requestId]);
  expect(await lab.redis.pttl(lab.keys.record(request.requestId))).toBeGreaterThan(0);
});

it('owes its charge once, pending until it is booked, however often it is said', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { request, repeat } = await ended(principal);
  await rollBack();

  expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

  const account = lab.keys.account(principal.tenantId);
  expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, pendingMicro: 15 * RATE });
  expect(await lab.redis.hget(account, `pt:${monthOf(Date.now())}`)).toBe('15');
  expect(await charges()).toEqual([request.requestId]);
  const book = { version: 2, balanceMicro: 85 * RATE, tokensByMonth: {} };
  await lab.accounts.publishBook(SHARD, principal.tenantId, book, [request.requestId]);
  expect(await repeat()).toBe('known');
  expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 0 });
});

it('counts once in the allowance of test keys', async () => {
  const principal = await lab.tenant(0, { mode: 'test' });
  const { request, repeat } = await ended(principal);
  await rollBack();

  expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

  expect(await lab.redis.get(lab.keys.testAllowance(principal.tenantId, dayOf(Date.now())))).toBe('15');
  expect(await charges()).toEqual([request.requestId]);
});

it('costs what it cost, although others have spent the credits since', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { repeat } = await ended(principal);
  await rollBack();
  await lab.accounts.publishBook(SHARD, principal.tenantId, { version: 2, balanceMicro: 0, tokensByMonth: {} }, []);

  await repeat();

  expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 15 * RATE });
});

it('owes its charge where its answer was brought back from MongoDB before', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { request, repeat } = await ended(principal);
  const cache = createAnswerCache(lab.redis, lab.keyspace);
  const stored = await cache.read(SHARD, request.requestId);
  if (stored === undefined) throw new Error('It has just ended');
  await rollBack();
  await cache.restore(SHARD, stored, { ttlMs: RETENTION_MS, namedMs: RETENTION_MS });

  expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

  expect(await charges()).toEqual([request.requestId]);
  expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 15 * RATE });
  expect(await textOf(request)).toBe('Hello');
});

it('leaves an Idempotency-Key to the request that has it by now', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { request, repeat } = await ended(principal);
  await rollBack();
  const name = lab.keys.idempotency(IDEMPOTENCY.name);
  await lab.redis.set(name, 'another');

  await repeat();

  expect(await lab.redis.get(name)).toBe('another');
  expect(await lab.redis.hexists(lab.keys.record(request.requestId), 'idempotency')).toBe(0);
});

it('keeps nothing of a tenant that keeps nothing, but its charge and that it has ended', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { request, repeat } = await ended(principal, ['Well, '], { retentionMs: 0 });
  await rollBack();

  expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

  expect(await textOf(request)).toBe('');
  expect(await charges()).toEqual([request.requestId]);
  expect(JSON.stringify(await lab.redis.hgetall(lab.keys.record(request.requestId)))).not.toContain('"a"');
  expect(await lab.redis.get(lab.keys.idempotency(IDEMPOTENCY.name))).not.toContain(IDEMPOTENCY.fingerprint);
});

it('stays away where its time was over: then a missing record is nothing that was lost', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { request, repeat } = await ended(principal, [], { retentionMs: 1 });
  await lab.redis.unlink(lab.keys.record(request.requestId), lab.keys.answer(request.requestId));

  await repeat();

  expect(await textOf(request)).toBe('');
  // The book takes it once.
  expect(await charges()).toEqual([request.requestId, request.requestId]);
  expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 15 * RATE });
});

it('is charged where an earlier delivery has sent its first text, of which this one knows nothing', async () => {
  const principal = await lab.tenant(100 * RATE);
  const { request, repeat } = await ended(principal, ['Well, '], { earlier: [] });
  await rollBack();

  expect(await repeat()).toBe('replayed');

  expect(await textOf(request)).toBe('');
  expect(await charges()).toEqual([request.requestId]);
});
