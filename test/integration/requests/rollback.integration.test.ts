import { setTimeout as pause } from 'node:timers/promises';

import { beforeAll, describe, expect, it } from '@jest/globals';

import { LOST } from '../../../shared/contracts/events.ts';
import { createReplayLog } from '../../../shared/redis/redis-return.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import type { DeliveryRef } from '../../../shared/requests/delivery.ts';
import { createStreamReader } from '../../../shared/requests/answers.ts';
import { waitFor, waitUntil } from '../../support/chat.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { rollBackTo } from '../../support/restore-lab.ts';
import { openRelayLab } from '../../support/relay-lab.ts';
import {
  endingOf,
  FAILED,
  LAB_SETTINGS,
  LEASE_MS,
  needs,
  RATE,
  RETENTION_MS,
  SHARD,
} from '../../support/request-lab.ts';
import type { LabRequest, RequestLab } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

let lab: RequestLab;
const relay = useStarted('relay', openRelayLab);
beforeAll(() => {
  lab = relay.lab;
});

/** Claims as a worker does, whose writes name their claim. */
async function claim(request: LabRequest, fence = 1): Promise<DeliveryRef> {
  const { owner } = await lab.run(request, fence);
  return { ...request.ref(fence), owner };
}

async function textOf({ requestId }: LabRequest): Promise<string> {
  const entries = await createStreamReader(lab.redis, lab.keyspace).readFrom(SHARD, requestId, 1);
  return entries.flatMap(({ deltas }) => deltas.map((literal) => String(JSON.parse(literal)))).join('');
}

const openReplayLog = () =>
  createReplayLog({ hasReconnectedRecently: () => false, clock: { now: () => 0 }, log: createRecordingLog() });

const JOURNAL = { eraseDeleted: () => Promise.resolve(), log: createRecordingLog() };
const journalOf = (replayLog: ReturnType<typeof openReplayLog>) =>
  createRequestStore(lab.redis, lab.keyspace, { ...LAB_SETTINGS, replays: { ...JOURNAL, replayLog } });

const stateOf = ({ requestId }: LabRequest) => lab.redis.hget(lab.keys.record(requestId), 'state');

describe('a Redis that comes back without its last second', () => {
  it('is sent the text again that it has lost, by the next append', async () => {
    const request = await lab.admit();
    const ref = await claim(request);
    await lab.requests.append(ref, 2, ['a', 'b']);
    const before = await lab.snapshot();
    await lab.requests.append(ref, 4, ['c', 'd'], { earlier: ['a', 'b'] });
    await rollBackTo(lab, before);

    expect(await lab.requests.append(ref, 5, ['e'], { earlier: ['a', 'b', 'c', 'd'] })).toBe('ok');

    expect(await textOf(request)).toBe('abcde');
  });

  it('is sent the text again that it has lost, by the end', async () => {
    const request = await lab.admit();
    const ref = await claim(request);
    const before = await lab.snapshot();
    await lab.requests.append(ref, 2, ['a', 'b']);
    await rollBackTo(lab, before);

    const ending = endingOf(request, 'c', { prompt: 1, completion: 3 });
    expect(await lab.requests.finish(ref, 2, ending, ['a', 'b'])).toBe(true);

    expect(await textOf(request)).toBe('abc');
    expect(await lab.redis.hget(lab.keys.record(request.requestId), 'lastSeq')).toBe('5');
  });

  it.each(['append', 'renew', 'finish'] as const)('is told of a claim that it has lost, by %s', async (how) => {
    const request = await lab.admit();
    const before = await lab.snapshot();
    const ref = await claim(request);
    await lab.requests.append(ref, 1, ['a']);
    await rollBackTo(lab, before);

    if (how === 'append') await lab.requests.append(ref, 2, ['b'], { earlier: ['a'] });
    else if (how === 'renew') expect(await lab.requests.renew(ref, needs(0))).toMatchObject({ outcome: 'ok' });
    else await lab.requests.finish(ref, 1, endingOf(request, 'b', { prompt: 1, completion: 2 }), ['a']);

    expect(await stateOf(request)).toBe(how === 'finish' ? 'done' : 'running');
    expect(await textOf(request)).toBe(how === 'renew' ? '' : 'ab');
  });

  it.each(['append', 'renew', 'finish', 'replayFinish'] as const)(
    'is told of the claim of a later delivery that it has lost, by %s',
    async (how) => {
      const request = await lab.admit();
      const first = await claim(request);
      const before = await lab.snapshot();
      const second = await claim(request, 2);
      await lab.requests.append(second, 1, ['a']);
      await rollBackTo(lab, before);

      const ending = endingOf(request, 'b', { prompt: 1, completion: 2 });
      if (how === 'append') expect(await lab.requests.append(second, 2, ['b'], { earlier: ['a'] })).toBe('ok');
      else if (how === 'renew') expect(await lab.requests.renew(second, needs(0))).toMatchObject({ outcome: 'ok' });
      else if (how === 'finish') expect(await lab.requests.finish(second, 1, ending, ['a'])).toBe(true);
      else expect(await lab.requests.replayFinish(second, 1, ending, ['a'])).toBe('replayed');

      expect(await lab.redis.hmget(lab.keys.record(request.requestId), 'fence', 'owner')).toEqual(['2', second.owner]);
      expect(await textOf(request)).toBe(how === 'renew' ? '' : 'ab');
      expect(await lab.requests.append(first, 1, ['c'])).toBe('superseded');
    },
  );

  it('lets only one of two deliveries write that have the same number', async () => {
    const request = await lab.admit();
    const before = await lab.snapshot();
    const first = await claim(request);
    await rollBackTo(lab, before);
    const second = await claim(request);

    expect(await lab.requests.append(first, 1, ['a'])).toBe('superseded');
    expect(await lab.requests.renew(first, needs(0))).toEqual({ outcome: 'superseded' });
    expect(await lab.requests.finish(first, 0, endingOf(request, 'a', { prompt: 1, completion: 1 }))).toBe(false);
    expect(await lab.requests.append(second, 1, ['b'])).toBe('ok');
    expect(await textOf(request)).toBe('b');
  });

  it.each(['append', 'renew', 'finish', 'replayFinish'] as const)(
    'is written to by %s once a claim is given back that was made by a call which was sent again',
    async (how) => {
      const patient = createRequestStore(lab.redis, lab.keyspace, {
        ...{ leaseMs: LEASE_MS, disconnectGraceMs: 30_000 },
        hasReconnectedRecently: () => true,
      });
      const request = await lab.admit();
      const before = await lab.snapshot();
      const ref = await claim(request);
      await rollBackTo(lab, before);
      await claim(request);
      /** As release-jobs.lua does. */
      const release = async () => {
        const record = lab.keys.record(request.requestId);
        await lab.redis.multi().hset(record, 'state', 'accepted', 'fence', 0).hdel(record, 'owner').exec();
      };
      const ending = endingOf(request, 'a', { prompt: 1, completion: 1 });
      const write = {
        append: () => patient.append(ref, 1, ['a']),
        renew: () => patient.renew(ref, needs(0)).then(({ outcome }) => outcome),
        finish: () => patient.finish(ref, 0, ending),
        replayFinish: () => patient.replayFinish(ref, 0, ending),
      }[how];

      const written = write();
      await pause(150);
      await release();

      expect(await written).toBe({ append: 'ok', renew: 'ok', finish: true, replayFinish: 'replayed' }[how]);
      const { owner } = ref;
      expect(await lab.redis.hget(lab.keys.record(request.requestId), 'owner')).toBe(owner);
    },
  );

  it('is told of an end without a charge, so that nothing runs again that a caller was refused', async () => {
    const replayLog = openReplayLog();
    const journal = journalOf(replayLog);
    const request = await lab.admit();
    const before = await lab.snapshot();
    const ref = await claim(request);
    await journal.finish(ref, 0, FAILED);
    await rollBackTo(lab, before);

    await replayLog.replay();

    expect(await lab.redis.hmget(lab.keys.record(request.requestId), 'state', 'status')).toEqual(['done', 'failed']);
    expect(await lab.figures(request.principal)).toMatchObject({ heldMicro: 0, pendingMicro: 0 });
  });

  it('is told again what was cancelled in line, so that it does not run', async () => {
    const replayLog = openReplayLog();
    const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS, replayLog });
    const request = await lab.admit();
    const before = await lab.snapshot();
    await records.cancel(request.principal, request.requestId);
    await rollBackTo(lab, before);

    await replayLog.replay();

    expect(await lab.requests.claim(request.ref(1))).toMatchObject({ kind: 'drop' });
    expect(await lab.figures(request.principal)).toMatchObject({ heldMicro: 0, pendingMicro: 0 });
  });

  it('is not told again of a cancelling that came too late, so that the end which it has lost is charged', async () => {
    const replayLog = openReplayLog();
    const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS, replayLog });
    const request = await lab.admit();
    const before = await lab.snapshot();
    const ref = await claim(request);
    const ending = endingOf(request, 'a', { prompt: 1, completion: 2 });
    await lab.requests.finish(ref, 0, ending);
    await records.cancel(request.principal, request.requestId);
    await rollBackTo(lab, before);

    await replayLog.replay();

    expect(await lab.requests.replayFinish(ref, 0, ending)).toBe('replayed');
    expect(await lab.figures(request.principal)).toMatchObject({ heldMicro: 0, pendingMicro: 3 * RATE });
  });
});

describe('a reader', () => {
  /** A request whose text a reader of this ingress has begun to see. */
  async function begun() {
    const request = await lab.admit();
    const before = await lab.snapshot();
    const channel = relay.hub.channelOf(SHARD);
    const ref = await claim(request);
    await lab.redis.hset(lab.keys.record(request.requestId), 'channels', channel);
    const heard = relay.read(request.requestId);
    await lab.requests.append(ref, 1, ['a']);
    await lab.requests.append(ref, 3, ['b', 'c']);
    await waitUntil(() => heard.texts().length === 3, 'the text');
    return { request, before, ref, heard, channel };
  }
  const ended = (heard: { entries: { terminal?: unknown }[] }) =>
    waitFor(() => heard.entries.find(({ terminal }) => terminal !== undefined)?.terminal, 'the end', 3_000);

  it('hears no increment twice when lost text is sent again and cut elsewhere', async () => {
    const { request, before, ref, heard, channel } = await begun();
    await rollBackTo(lab, before);
    await lab.redis.hset(lab.keys.record(request.requestId), 'channels', channel);

    await lab.requests.append(ref, 4, ['d'], { earlier: ['a', 'b', 'c'] });

    await waitUntil(() => heard.texts().length === 4, 'the rest');
    expect(heard.texts()).toEqual(['a', 'b', 'c', 'd']);
    heard.reader.close();
  });

  it('is told of an error where another answer has taken the place of the one that it has begun', async () => {
    const { request, before, heard, channel } = await begun();
    await rollBackTo(lab, before);
    await lab.redis.hset(lab.keys.record(request.requestId), 'channels', channel);
    const other = await claim(request);

    await lab.requests.append(other, 4, ['1', '2', '3', '4']);

    expect(await ended(heard)).toEqual(LOST);
    expect(heard.texts()).toEqual(['a', 'b', 'c']);
    heard.reader.close();
  });

  it('hears the end that a later delivery gives an answer whose worker died', async () => {
    const { request, heard } = await begun();
    const later = await claim(request, 2);

    await lab.requests.finish(later, 3, FAILED);

    expect(await ended(heard)).toEqual(FAILED.terminal);
    heard.reader.close();
  });

  it('is told of an error where its worker died and Redis has less of the answer than it has seen', async () => {
    const { request, before, heard, channel } = await begun();
    await rollBackTo(lab, before);
    await lab.redis.hset(lab.keys.record(request.requestId), 'channels', channel);
    const later = await claim(request);

    await lab.requests.finish(later, 0, FAILED);

    expect(await ended(heard)).toEqual(LOST);
    heard.reader.close();
  });
});
