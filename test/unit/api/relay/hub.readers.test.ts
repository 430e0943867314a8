import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { createRelayHub } from '../../../../api/relay/hub.ts';
import type { RelayHub } from '../../../../api/relay/hub.ts';
import { encodeEntry, FAULT, LOST } from '../../../../shared/contracts/events.ts';
import type { StreamEntry, Terminal } from '../../../../shared/contracts/events.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

const RENEW_MS = 5_000;
const STOP: Terminal = { finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 1 } };

/** A hub that hears of one request, and what it tells Redis of its readers. */
function openHub() {
  const told: string[] = [];
  const tell = (what: string) => () => {
    told.push(what);
    return Promise.resolve();
  };
  let publish: ((requestId: string, head: string, payload: string) => void) | undefined;
  let ready = () => undefined as unknown;
  let isKnown = true;
  const hub: RelayHub = createRelayHub({
    channel: {
      nameOf: (shard) => `channel ${shard}`,
      subscribe: () => Promise.resolve(),
      isSubscribed: () => true,
      onEntry: (listener) => (publish = listener),
      onReady: (listener) => (ready = listener),
    },
    streams: { readFrom: () => Promise.resolve([]) },
    records: {
      renewReader: async () => tell('renew')().then(() => (isKnown ? 'open' : 'unknown')),
      detach: tell('detach'),
      wipe: tell('wipe'),
    },
    now: () => Date.now(),
    events: { emit: () => undefined },
    log: createRecordingLog(),
  });
  return {
    hub,
    told,
    publish: (lastSeq: number, terminal?: Terminal) =>
      publish?.('req_1', String(lastSeq), encodeEntry(terminal === undefined ? ['text'] : [], terminal)),
    forget: () => (isKnown = false),
    remember: () => (isKnown = true),
    comeBack: () => ready(),
  };
}

function read(hub: RelayHub, options?: Parameters<RelayHub['open']>[3]) {
  const entries: StreamEntry[] = [];
  const reader = hub.open(0, 'req_1', (entry) => entries.push(entry), options);
  return { entries, reader };
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('a reader of a request', () => {
  it('whose request Redis does not know is told, but not before it is admitted', async () => {
    const { hub, told, forget } = openHub();
    const { entries, reader } = read(hub, { isAwaited: true });
    let losses = 0;
    hub.onLost('req_1', () => (losses += 1));
    forget();

    await jest.advanceTimersByTimeAsync(RENEW_MS);
    expect([told, entries]).toEqual([[], []]);

    reader.confirm();
    await jest.advanceTimersByTimeAsync(RENEW_MS);
    // Its worker may tell Redis of it again, until the next look.
    expect([told, entries]).toEqual([['renew'], []]);
    await jest.advanceTimersByTimeAsync(RENEW_MS);
    expect([told, entries, losses]).toEqual([['renew', 'renew'], [], 0]);
    await jest.advanceTimersByTimeAsync(RENEW_MS / 2);
    expect(told).toEqual(['renew', 'renew', 'renew']);
    expect(entries).toEqual([{ lastSeq: 1, deltas: [], terminal: LOST }]);
    await jest.advanceTimersByTimeAsync(RENEW_MS * 2);
    expect(losses).toBe(1);
  });

  it('that has not been told yet keeps its lost request', async () => {
    const { hub, forget } = openHub();
    read(hub);
    const slow = read(hub);
    let losses = 0;
    hub.onLost('req_1', () => (losses += 1));
    slow.reader.pause();
    forget();

    await jest.advanceTimersByTimeAsync(RENEW_MS * 3);
    expect([losses, slow.entries]).toEqual([0, []]);

    slow.reader.resume();
    await jest.advanceTimersByTimeAsync(RENEW_MS);
    expect([losses, slow.entries]).toEqual([1, [{ lastSeq: 1, deltas: [], terminal: LOST }]]);
  });

  it('whose request comes back into Redis goes on', async () => {
    const { hub, forget, remember, publish } = openHub();
    const { entries } = read(hub);
    forget();
    await jest.advanceTimersByTimeAsync(RENEW_MS);
    remember();
    await jest.advanceTimersByTimeAsync(RENEW_MS);
    forget();

    await jest.advanceTimersByTimeAsync(RENEW_MS);
    publish(1);

    expect(entries.map(({ lastSeq, terminal }) => [lastSeq, terminal])).toEqual([[1, undefined]]);
  });

  it('waits anew where Redis went away once more, and has just come back', async () => {
    const { hub, forget, comeBack } = openHub();
    const { entries } = read(hub);
    forget();
    await jest.advanceTimersByTimeAsync(RENEW_MS * 2);

    comeBack();
    await jest.advanceTimersByTimeAsync(RENEW_MS);
    expect(entries).toEqual([]);

    await jest.advanceTimersByTimeAsync(RENEW_MS);
    expect(entries).toEqual([{ lastSeq: 1, deltas: [], terminal: LOST }]);
  });

  it('that leaves is detached, with the last of its request and before the end only', () => {
    const { hub, told, publish } = openHub();
    const [first, second] = [read(hub), read(hub)];

    first.reader.close();
    expect(told).toEqual([]);
    second.reader.close();
    expect(told).toEqual(['detach']);

    const { reader } = read(hub);
    publish(1);
    publish(3, STOP);
    reader.close();
    expect(told).toEqual(['detach']);
    expect(hub.size()).toBe(0);
  });

  it('that cannot take an entry hears of a fault, and of nothing after it', () => {
    const { hub, publish } = openHub();
    const heard: StreamEntry[] = [];
    hub.open(0, 'req_1', (entry) => {
      heard.push(entry);
      if (entry.terminal === undefined) throw new Error('cannot be written');
    });
    const beside = read(hub);

    publish(1);
    publish(2);

    expect(heard.map(({ terminal }) => terminal)).toEqual([undefined, FAULT]);
    expect(beside.entries).toHaveLength(2);
  });
});

describe('an answer of which nothing is kept', () => {
  it('goes once every reader here has its end', () => {
    const { hub, told, publish } = openHub();
    const slow = read(hub);
    read(hub);
    hub.deleteWhenRead('req_1');

    slow.reader.pause();
    publish(2, STOP);
    expect(told).toEqual([]);
    slow.reader.close();

    expect(told).toEqual(['wipe']);
  });

  it('stays for whoever reads it later, where nobody here did', () => {
    const { hub, told, publish } = openHub();
    hub.deleteWhenRead('req_1');

    const { reader } = read(hub);
    publish(2, STOP);
    reader.close();

    expect(told).toEqual([]);
  });
});
