import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import { createCloser } from '../../../shared/lifecycle/closer.ts';
import type { Closer } from '../../../shared/lifecycle/closer.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { connectMongo } from '../../../shared/mongo/connection.ts';
import type { MongoConnection } from '../../../shared/mongo/connection.ts';
import { createRequestLog, openRequestRecorder } from '../../../shared/mongo/requests/request-log.ts';
import type { RequestRecorder } from '../../../shared/mongo/requests/request-log.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { mongoUri, uniqueName } from '../../support/stores.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { waitFor } from '../../support/wait-for.ts';

const OF = { tenantId: newId('ten'), keyId: newId('key'), endpoint: 'chat' };
const ended = (requestId: string, status: 'failed' | 'completed', createdAt = Date.now()) => ({
  ...{ _id: requestId, ...OF, status, createdAt },
});

describe('the recorder of requests', () => {
  let proxy: TcpProxy;
  let mongo: MongoConnection;
  let closer: Closer;
  let recorder: RequestRecorder;
  const open = (keptDays = 30) =>
    openRequestRecorder(mongo, { keptDays, clock: systemClock, closer, log: createRecordingLog() });
  beforeEach(async () => {
    const uri = new URL(mongoUri(uniqueName('requests')));
    proxy = await openTcpProxy(uri.href);
    mongo = await connectMongo(proxy.url);
    closer = createCloser(() => undefined);
    recorder = open();
  });
  afterEach(async () => {
    await closer.close();
    await mongo.close();
    await proxy.close();
  });

  const found = (requestId: string, status: string) =>
    waitFor(async () => {
      const row = await createRequestLog(mongo)
        .find(requestId)
        .catch(() => undefined);
      return row?.status === status ? row : undefined;
    }, `${requestId} to be ${status}`);

  it('keeps the later end of a request that was replayed, and the rows beside it', async () => {
    const [replayed, other] = [newId('req'), newId('req')];
    recorder.note(ended(replayed, 'failed'));
    await found(replayed, 'failed');

    recorder.note(ended(replayed, 'completed'));
    recorder.note(ended(other, 'completed'));

    await found(replayed, 'completed');
    await found(other, 'completed');
  });

  it('keeps what a worker knows of an end rather than what an ingress guesses of it', async () => {
    const [run, lost] = [newId('req'), newId('req')];
    const guess = { mode: 'live', tier: 'mobius', ...OF, endpoint: 'chat', acceptedAt: Date.now() } as const;
    const how = { code: 'model_unavailable', reason: 'lost by Redis', isGuess: true } as const;
    recorder.note(ended(run, 'completed'));
    await found(run, 'completed');

    recorder.endEarly({ requestId: run, ...guess }, how);
    recorder.endEarly({ requestId: lost, ...guess }, how);

    expect(await found(lost, 'failed')).toMatchObject({ reason: 'lost by Redis', tier: 'mobius' });
    await found(run, 'completed');
  });

  it('holds what ends while MongoDB is away, and counts each refusal once', async () => {
    const requestId = newId('req');
    proxy.set('refuse');
    recorder.note(ended(requestId, 'completed'));
    for (let call = 0; call < 100; call += 1)
      recorder.refuse({ ...OF, requestId: newId('req'), mode: 'live', code: 'rpm_exceeded' });
    proxy.set('pass');

    await found(requestId, 'completed');

    const log = createRequestLog(mongo);
    const counts = () => log.listRefusals({ keyId: OF.keyId }, { limit: 10, order: 'desc' });
    const sum = await waitFor(async () => {
      const rows = await counts();
      const total = rows.reduce((all, { count }) => all + count, 0);
      return total >= 100 ? { total, minutes: rows.length } : undefined;
    }, 'the counts');
    expect(sum.total).toBe(100);
    const samples = await log.list({ keyId: OF.keyId, status: 'refused' }, { limit: 100, order: 'desc' });
    expect(samples).toHaveLength(5 * sum.minutes);
  }, 30_000);

  it('deletes rows when their time is over', async () => {
    const [old, young] = [newId('req'), newId('req')];
    const monthAgo = Date.now() - 30 * 24 * 3_600_000;
    recorder.note(ended(old, 'completed', monthAgo - 1));
    recorder.note(ended(young, 'completed', monthAgo + 60_000));
    await found(young, 'completed');

    recorder = open();

    const log = createRequestLog(mongo);
    await waitFor(async () => (await log.find(old)) === undefined, 'the old row to go');
    await found(young, 'completed');
  });

  it('writes at its close what it still holds, and notes nothing where nothing is kept', async () => {
    const [last, unkept] = [newId('req'), newId('req')];
    recorder.note(ended(last, 'completed'));
    open(0).note(ended(unkept, 'completed'));

    await closer.close();

    const log = createRequestLog(mongo);
    expect([await log.find(last), await log.find(unkept)]).toMatchObject([{ status: 'completed' }, undefined]);
  });
});
