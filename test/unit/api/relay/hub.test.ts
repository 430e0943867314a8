import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { createRelayHub } from '../../../../api/relay/hub.ts';
import type { RelayEvents, RelayHub } from '../../../../api/relay/hub.ts';
import { encodeEntry } from '../../../../shared/contracts/events.ts';
import type { StreamEntry } from '../../../../shared/contracts/events.ts';
import { createEventBus } from '../../../../shared/lifecycle/event-bus.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

/** A hub over a stream in memory; the test decides what is published and when a read is answered. */
function openHub() {
  const stored: StreamEntry[] = [];
  const events = createEventBus<RelayEvents>(() => undefined);
  const gaps: string[] = [];
  events.on('relay.gap_filled', () => gaps.push('gap'));
  const reads: { fromSeq: number; returned: number }[] = [];
  let publish: ((requestId: string, head: string, payload: string) => void) | undefined;
  let ready: (() => void) | undefined;
  let failing = false;
  const hub: RelayHub = createRelayHub({
    channel: {
      nameOf: (shard) => `channel ${shard}`,
      subscribe: () => Promise.resolve(),
      isSubscribed: () => true,
      onEntry: (listener) => (publish = listener),
      onReady: (listener) => (ready = listener),
    },
    streams: {
      readFrom(_shard, _requestId, fromSeq, count = Infinity) {
        if (failing) return Promise.reject(new Error('Command timed out'));
        const entries = stored.filter(({ lastSeq }) => lastSeq >= fromSeq).slice(0, count);
        reads.push({ fromSeq, returned: entries.length });
        return Promise.resolve(entries);
      },
    },
    records: {
      renewReader: () => Promise.resolve('open'),
      detach: () => Promise.resolve(),
      wipe: () => Promise.resolve(),
    },
    now: () => Date.now(),
    events,
    log: createRecordingLog(),
  });
  return {
    hub,
    reads,
    gaps,
    /** One event of one increment. */
    store: (lastSeq: number) => stored.push({ lastSeq, deltas: [`"${lastSeq}"`] }),
    publish: (lastSeq: number) => publish?.('req_1', String(lastSeq), encodeEntry([String(lastSeq)])),
    reconnect: () => ready?.(),
    fail: (isFailing: boolean) => (failing = isFailing),
  };
}

describe('the hub', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  function read({ hub }: ReturnType<typeof openHub>) {
    const seqs: number[] = [];
    const reader = hub.open(0, 'req_1', ({ lastSeq }) => seqs.push(lastSeq));
    return { seqs, reader };
  }

  it('reports a read that finds what no message has brought, and no other', async () => {
    const relay = openHub();
    relay.store(1);
    relay.hub.open(0, 'req_1', () => undefined, { existing: true });
    await jest.advanceTimersByTimeAsync(0);
    relay.reconnect();
    await jest.advanceTimersByTimeAsync(0);
    expect(relay.gaps).toEqual([]);

    relay.store(2);
    relay.publish(3);
    await jest.advanceTimersByTimeAsync(0);

    expect(relay.gaps).toEqual(['gap']);
  });

  it('the hub tries again where a read failed', async () => {
    const relay = openHub();
    const { seqs } = read(relay);
    relay.store(1);
    relay.fail(true);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(seqs).toEqual([]);

    relay.fail(false);
    await jest.advanceTimersByTimeAsync(1_500);

    expect(seqs).toEqual([1]);
  });

  it('does not read the whole rest again and again for a reader that takes a little at a time', async () => {
    const relay = openHub();
    for (let seq = 1; seq <= 2_000; seq += 1) relay.store(seq);
    const seqs: number[] = [];
    const reader = relay.hub.open(
      0,
      'req_1',
      ({ lastSeq }) => {
        seqs.push(lastSeq);
        if (lastSeq % 20 === 0) reader.pause();
      },
      { existing: true },
    );

    while (seqs.length < 2_000) {
      reader.resume();
      await jest.advanceTimersByTimeAsync(0);
    }

    expect(seqs).toEqual(Array.from({ length: 2_000 }, (_, index) => index + 1));
    const returned = relay.reads.reduce((sum, read) => sum + read.returned, 0);
    expect(returned).toBeLessThan(2_000 * 5);
  });

  it('reads once for all readers of a request that have heard nothing', async () => {
    const relay = openHub();
    const all = Array.from({ length: 10 }, () => read(relay).seqs);
    const resumed: number[] = [];
    relay.hub.open(0, 'req_1', ({ lastSeq }) => resumed.push(lastSeq), { fromSeq: 3, existing: true });
    await jest.advanceTimersByTimeAsync(0);
    relay.reads.splice(0);
    for (let seq = 1; seq <= 5; seq += 1) relay.store(seq);

    await jest.advanceTimersByTimeAsync(1_000);

    for (const seqs of all) expect(seqs).toEqual([1, 2, 3, 4, 5]);
    expect(resumed).toEqual([3, 4, 5]);
    expect(relay.reads).toHaveLength(1);
  });

  it('goes on reading for a reader that comes while the others are read for', async () => {
    const relay = openHub();
    for (let seq = 1; seq <= 200; seq += 1) relay.store(seq);
    const late: number[] = [];
    relay.hub.open(0, 'req_1', () => undefined, { fromSeq: 150, existing: true });
    relay.hub.open(0, 'req_1', ({ lastSeq }) => late.push(lastSeq), { existing: true });
    await jest.advanceTimersByTimeAsync(0);

    expect(late).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
  });
});
