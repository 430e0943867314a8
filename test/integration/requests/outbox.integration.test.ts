import { expect, it } from '@jest/globals';

import { createOutbox, isReadable } from '../../../shared/requests/outbox.ts';
import { recordOf } from '../../support/ledger-lab.ts';
import { endingOf, openRequestLab, SHARD } from '../../support/request-lab.ts';
import { redisUrl } from '../../support/stores.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { useEach } from '../../support/use-service.ts';

const lab = useEach('lab', openRequestLab);

async function put(count: number): Promise<string[]> {
  const records = Array.from({ length: count }, () => recordOf('ten_1'));
  for (const record of records) await lab.redis.xadd(lab.keys.outbox, '*', 's', JSON.stringify(record));
  return records.map(({ requestId }) => requestId);
}

const read = async (from: 'new' | 'redelivered', count = 100) =>
  (await lab.outbox.read(SHARD, from, count)).map(({ record }) => record?.requestId);

it('is empty on a shard where nothing has ever been finished', async () => {
  expect(await read('redelivered')).toEqual([]);
  expect(await read('new')).toEqual([]);
  expect(await lab.outbox.length(SHARD)).toBe(0);
});

it('gives out what was written before the first consumer came', async () => {
  const written = await put(3);

  expect(await read('new')).toEqual(written);
});

it('gives each entry out once as new, in order and no more than asked for', async () => {
  const written = await put(5);

  expect(await read('new', 2)).toEqual(written.slice(0, 2));
  expect(await read('new', 2)).toEqual(written.slice(2, 4));
  expect(await read('new', 2)).toEqual(written.slice(4));
  expect(await read('new', 2)).toEqual([]);
});

it('gives out again what was read and never acknowledged, to whoever leads next', async () => {
  const written = await put(3);
  const entries = await lab.outbox.read(SHARD, 'new', 100);
  await lab.outbox.acknowledge(SHARD, entries.slice(0, 1).filter(isReadable));

  expect(await read('redelivered')).toEqual(written.slice(1));
  expect(await read('redelivered')).toEqual(written.slice(1));
});

it('gives all that is there out as new to a process that begins to lead, what another one has read included', async () => {
  const written = await put(2);
  await read('new');
  const another = createOutbox(lab.redis, lab.keyspace);

  expect(await another.read(SHARD, 'redelivered', 100)).toEqual([]);
  expect((await another.read(SHARD, 'new', 100)).map(({ record }) => record?.requestId)).toEqual(written);
});

it('keeps nothing of what was acknowledged, and takes a second acknowledgement', async () => {
  await put(2);
  const entries = (await lab.outbox.read(SHARD, 'new', 100)).filter(isReadable);

  await lab.outbox.acknowledge(SHARD, entries);
  await lab.outbox.acknowledge(SHARD, entries);
  await lab.outbox.acknowledge(SHARD, []);

  expect(await lab.outbox.length(SHARD)).toBe(0);
  expect(await read('redelivered')).toEqual([]);
});

it('keeps a dead letter and gives it out no more', async () => {
  await lab.redis.xadd(lab.keys.outbox, '*', 's', 'not JSON');
  const [entry] = await lab.outbox.read(SHARD, 'new', 100);
  expect(entry).toMatchObject({ raw: 'not JSON', record: undefined });
  if (entry === undefined) throw new Error('Nothing was read');

  await lab.outbox.deadLetter(SHARD, entry);

  expect(await lab.redis.xrange(lab.keys.deadLetters, '-', '+')).toEqual([[expect.any(String), ['s', 'not JSON']]]);
  expect(await read('redelivered')).toEqual([]);
  expect(await lab.outbox.length(SHARD)).toBe(0);
});

it('does not take an entry out that could not be dead-lettered', async () => {
  const [requestId] = await put(1);
  const [entry] = await lab.outbox.read(SHARD, 'new', 100);
  if (entry === undefined) throw new Error('Nothing was read');
  // A key of another type, as the one command of the transaction that fails.
  await lab.redis.set(lab.keys.deadLetters, 'in the way');

  await expect(lab.outbox.deadLetter(SHARD, entry)).rejects.toThrow(/WRONGTYPE/);

  expect(await lab.outbox.length(SHARD)).toBe(1);
  expect(await read('redelivered')).toEqual([requestId]);
});

it('says how far settlement is behind, from the oldest record on', async () => {
  expect(await lab.outbox.backlog(SHARD)).toEqual({ outbox: 0, deadLetters: 0, lagSeconds: 0 });
  const [seconds] = await lab.redis.time();
  await lab.redis.xadd(lab.keys.outbox, `${String(Number(seconds) - 90)}000-0`, 's', JSON.stringify(recordOf('ten_1')));
  await put(2);
  await lab.redis.xadd(lab.keys.deadLetters, '*', 's', 'not JSON');

  const { lagSeconds, ...lengths } = await lab.outbox.backlog(SHARD);

  expect(lengths).toEqual({ outbox: 3, deadLetters: 1 });
  expect(Math.round(lagSeconds / 10)).toBe(9);
});

it('puts dead letters back in their order, those of many pages, and none that has come meanwhile', async () => {
  const records = Array.from({ length: 1_203 }, () => JSON.stringify(recordOf('ten_1')));
  for (const record of records) await lab.redis.xadd(lab.keys.deadLetters, '*', 's', record);

  expect(await lab.outbox.requeue(SHARD)).toEqual({ requeued: 1_203, left: 0 });

  expect((await lab.outbox.read(SHARD, 'new', 2_000)).map(({ raw }) => raw)).toEqual(records);
  expect(await lab.outbox.backlog(SHARD)).toMatchObject({ outbox: 1_203, deadLetters: 0 });
});

it('keeps an entry whose charge is pending again, as Redis has come back without its book', async () => {
  const request = await lab.admit();
  await lab.run(request, 1);
  await lab.requests.finish(request.ref(1), 0, endingOf(request, 'a', { prompt: 1, completion: 1 }));
  const entries = (await lab.outbox.read(SHARD, 'new', 100)).filter(isReadable);

  await lab.outbox.acknowledge(SHARD, entries);
  expect(await lab.outbox.length(SHARD)).toBe(1);

  const { tenantId } = request.principal;
  const book = { version: 2, balanceMicro: 1, tokensByMonth: {} };
  await lab.accounts.publishBalance(SHARD, tenantId, book, [request.requestId]);
  await lab.outbox.acknowledge(SHARD, entries);
  expect(await lab.outbox.length(SHARD)).toBe(0);
});

it('gets a dead letter back once, however many ask for that at once', async () => {
  await lab.redis.xadd(lab.keys.deadLetters, '*', 's', JSON.stringify(recordOf('ten_1')));

  const done = await Promise.all([lab.outbox.requeue(SHARD), lab.outbox.requeue(SHARD)]);

  expect(done.reduce((sum, { requeued }) => sum + requeued, 0)).toBe(1);
  expect(await lab.outbox.length(SHARD)).toBe(1);
  expect(await lab.redis.xlen(lab.keys.deadLetters)).toBe(0);
});

it('reads a record whose answer is lost with the answer that comes', async () => {
  const proxy = await openTcpProxy(redisUrl());
  const outbox = createOutbox(await lab.connect(proxy.url), lab.keyspace);
  await outbox.read(SHARD, 'new', 100);
  const written = await put(1);
  const idsOf = (entries: Awaited<ReturnType<typeof outbox.read>>) => entries.map(({ record }) => record?.requestId);
  const lost = proxy.cutNextReply();

  const answer = outbox.read(SHARD, 'new', 100);
  await lost;

  expect(idsOf(await answer)).toEqual(written);
  expect(await outbox.read(SHARD, 'new', 100)).toEqual([]);
  expect(idsOf(await outbox.read(SHARD, 'redelivered', 100))).toEqual(written);
  await proxy.close();
});
