import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import type { Principal } from '../../shared/domain/keys/principal.ts';
import { dayOf, monthOf } from '../../shared/domain/pricing/pricing.ts';
import { createRecordStore } from '../../shared/infra/redis/requests/record-store.ts';
import type { DeliveryRef, Ending } from '../../shared/infra/redis/requests/request-store.ts';
import type { RecordFacts } from '../../shared/infra/redis/requests/running-request.ts';
import { createAnswerCache, createStreamReader } from '../../shared/infra/redis/requests/stored-answers.ts';
import {
  endingOf,
  FAILED,
  LEASE_MS,
  needs,
  openRequestLab,
  RATE,
  RETENTION_MS,
  SHARD,
} from '../support/request-lab.ts';
import type { LabRequest, RequestLab } from '../support/request-lab.ts';
import { waitFor } from '../support/wait-for.ts';

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

/** A request that runs, as its worker knows it. */
async function running(principal: Principal, age = 0) {
  before = await lab.snapshot();
  const request = await lab.admit({ principal, entityHash: 'an entity', idempotency: IDEMPOTENCY });
  const { owner, seq, remainingMs, tokenLimit, now: startedAt } = await lab.run(request, 1);
  const { tier, mode, acceptedAt } = request.envelope;
  const facts: RecordFacts = {
    tier,
    mode,
    acceptedAt: acceptedAt - age,
    startedAt,
    seq,
    deadline: startedAt + remainingMs,
    metadataJson: '{"a":"b"}',
    idempotency: IDEMPOTENCY,
    entityHash: 'an entity',
    ...(tokenLimit === undefined ? {} : { tokenLimit }),
  };
  return { request, ref: { ...request.ref(1), owner, facts } };
}

/** A request that has ended, with what its worker keeps of its end. `sent`: text that went ahead. */
async function ended(principal: Principal, sent: readonly string[] = [], more: Partial<Ending> = {}) {
  const { request, ref } = await running(principal);
  if (sent.length > 0) await lab.requests.append(ref, sent.length, sent);
  const ending = { ...endingOf(request, 'Hello', { prompt: 10, completion: 5 }), earlier: sent, ...more };
  expect(await lab.requests.finish(ref, sent.length, ending)).toBe(true);
  return { request, repeat: () => lab.requests.replayFinish(ref, sent.length, ending) };
}

const textOf = async ({ requestId }: LabRequest) => {
  const entries = await createStreamReader(lab.redis, lab.keyspace).readFrom(SHARD, requestId, 1);
  return entries.flatMap(({ deltas }) => deltas.map((literal) => String(JSON.parse(literal)))).join('');
};
const charges = async () => (await lab.outbox.read(SHARD, 'new', 10)).map(({ record }) => record?.requestId);

describe('its end', () => {
  it('has its answer again, its key, its place and its list, as nothing had been lost', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, repeat } = await ended(principal, ['Well, ', 'yes. ']);
    const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
    const found = await records.find(principal, request.requestId);
    const read = () =>
      lab.redis.hmget(lab.keys.record(request.requestId), 'seq', 'key', 'month', 'fence', 'idempotency');
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

  it('keeps nothing of a tenant that keeps nothing, but for whoever may be reading, its charge and that it has ended', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, repeat } = await ended(principal, ['Well, '], { retentionMs: 0 });
    await rollBack();

    expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

    expect(await lab.redis.pttl(lab.keys.answer(request.requestId))).toBeLessThanOrEqual(60_000);
    expect(await charges()).toEqual([request.requestId]);
    expect(JSON.stringify(await lab.redis.hgetall(lab.keys.record(request.requestId)))).not.toContain('"a"');
    expect(await lab.redis.get(lab.keys.idempotency(IDEMPOTENCY.name))).not.toContain(IDEMPOTENCY.fingerprint);
  });

  it('stays away where its time was over: then a missing record is nothing that was lost', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, repeat } = await ended(principal, [], { retentionMs: 1 });
    await lab.redis.unlink(lab.keys.record(request.requestId), lab.keys.answer(request.requestId));
    const { finishedAt } = request.settlement(0, 0);
    await waitFor(() => (Date.now() > finishedAt + 1 ? true : undefined), 'the end of its time');

    await repeat();

    expect(await textOf(request)).toBe('');
    // The book takes it once.
    expect(await charges()).toEqual([request.requestId, request.requestId]);
    expect(await lab.figures(principal)).toMatchObject({ pendingMicro: 15 * RATE });
  });

  it('stays a failure, so that what its caller was told has failed does not run again', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, ref } = await running(principal);
    await lab.requests.finish(ref, 0, FAILED);
    await rollBack();

    expect(await lab.requests.replayFinish(ref, 0, FAILED)).toBe('replayed');

    const state = await lab.redis.hmget(lab.keys.record(request.requestId), 'state', 'status');
    expect(state).toEqual(['done', 'failed']);
    // Its key is free for the next try.
    expect(await lab.redis.exists(lab.keys.idempotency(IDEMPOTENCY.name))).toBe(0);
    expect([await charges(), await lab.figures(principal)]).toMatchObject([[], { heldMicro: 0, pendingMicro: 0 }]);
  });

  it('is written where Redis has the admission without a body, as a worker was quicker than its ingress', async () => {
    const principal = await lab.tenant(100 * RATE);
    const { request, repeat } = await ended(principal);
    await rollBack();
    await lab.admit({ principal, requestId: request.requestId, withoutBody: true });

    expect([await repeat(), await repeat()]).toEqual(['replayed', 'known']);

    expect(await charges()).toEqual([request.requestId]);
    expect(await textOf(request)).toBe('Hello');
    expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, pendingMicro: 15 * RATE });
  });
});

describe('while it runs', () => {
  const END = { prompt: 10, completion: 5 };
  /** Each tells Redis of the request that it has lost, with "Well, " sent before. */
  const WRITES = {
    append: (ref: DeliveryRef) => lab.requests.append(ref, 2, ['yes.'], { earlier: ['Well, '] }),
    renew: async (ref: DeliveryRef) => (await lab.requests.renew(ref, needs(20))).outcome,
    finish: async (ref: DeliveryRef, request: LabRequest) =>
      (await lab.requests.finish(ref, 1, { ...endingOf(request, 'yes.', END), earlier: ['Well, '] })) ? 'ok' : 'no',
  };

  async function lost(age = 0) {
    const principal = await lab.tenant(100 * RATE);
    const { request, ref } = await running(principal, age);
    await lab.requests.append(ref, 1, ['Well, ']);
    await rollBack();
    return { principal, request, ref: { ...ref, envelope: request.envelope } };
  }

  it.each(Object.keys(WRITES) as (keyof typeof WRITES)[])('it goes on, told by %s', async (how) => {
    const { principal, request, ref } = await lost();

    expect(await WRITES[how](ref, request)).toBe('ok');

    if (how !== 'finish') {
      const leasedUntil = Number(await lab.redis.zscore(lab.keys.inflight, request.requestId));
      expect(leasedUntil).toBeGreaterThan(request.admission.now + LEASE_MS - 1_000);
      expect(await WRITES.renew(ref)).toBe('ok');
      expect(await lab.figures(principal)).toMatchObject({ heldMicro: 20 * RATE });
      expect(await lab.redis.zrange(lab.keys.open(principal.tenantId), '0', '-1')).toEqual([request.requestId]);
      expect(await WRITES.finish(ref, request)).toBe('ok');
    }
    expect(await textOf(request)).toBe('Well, yes.');
  });

  it('it goes on where several calls find it missing at once', async () => {
    const { request, ref } = await lost();

    expect(await Promise.all([WRITES.renew(ref), WRITES.append(ref)])).toEqual(['ok', 'ok']);

    expect(await WRITES.finish(ref, request)).toBe('ok');
    expect(await textOf(request)).toBe('Well, yes.');
  });

  it('it is bounded by what its tenant may use', async () => {
    const principal = await lab.tenant(100 * RATE, { monthlyTokenBudget: 25 });
    const { ref, request } = await running(principal);
    await rollBack();
    const lease = { ...ref, envelope: request.envelope };

    expect((await lab.requests.renew(lease, needs(20))).outcome).toBe('ok');
    expect(await lab.requests.renew(lease, needs(40))).toMatchObject({ held: { tokens: 25 } });
  });

  it('another worker can take it over', async () => {
    const { request, ref } = await lost();
    await WRITES.renew(ref);

    expect(await lab.run(request, 2)).toMatchObject({ envelope: request.envelope, sent: 0 });
    expect(await WRITES.append(ref)).toBe('superseded');
  });

  it('it stays away where it was accepted too long ago to be lost, or has been erased', async () => {
    const old = await lost(11_000);
    expect(await WRITES.append(old.ref)).toBe('superseded');
    expect(await WRITES.finish(old.ref, old.request)).toBe('no');

    const erased = await lost();
    await lab.redis.hset(lab.keys.record(erased.request.requestId), 'state', 'void');
    expect(await WRITES.append(erased.ref)).toBe('superseded');
    expect(await lab.redis.exists(lab.keys.body(erased.request.requestId))).toBe(0);
  });
});
