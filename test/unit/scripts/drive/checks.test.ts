import { describe, expect, it } from '@jest/globals';

import { compareDrive } from '../../../../scripts/drive/checks.ts';
import type { Driven } from '../../../../scripts/drive/drive.ts';
import type { TurnRecord } from '../../../../scripts/drive/chat-client.ts';
import type { RequestDetail } from '../../../../scripts/simulated-provider/stats.ts';

function recordOf(turn: number, changes: Partial<TurnRecord> = {}): TurnRecord {
  return {
    requestId: `req_${turn}`,
    model: 'mobius',
    text: `Answer ${turn}`,
    finishReason: 'stop',
    promptTokens: 10,
    completionTokens: 5,
    error: undefined,
    latencyMs: 1,
    firstTokenMs: undefined,
    waits: 0,
    conversation: '81',
    entityId: 'drive-1-81',
    turn,
    stream: false,
    submitted: [{ role: 'user', content: `Question ${turn}` }],
    ...changes,
  };
}

function detailOf(messages: readonly unknown[], changes: Partial<RequestDetail> = {}): RequestDetail {
  return {
    request_id: 'req_2',
    calls: 1,
    completed: 1,
    failed: 0,
    aborted: 0,
    prompt_tokens: 10,
    completion_tokens: 5,
    messages_last: messages.length,
    messages,
    ...changes,
  };
}

const user = (content: string) => ({ role: 'user', content });
const assistant = (content: string) => ({ role: 'assistant', content });
const WHOLE = [user('Question 1'), assistant('Answer 1'), user('Question 2')];
const RECORDS = [recordOf(1), recordOf(2)];

const BOOKED = { entries: 2, tokens: 30, chargedMicro: 30_000_000, fallenMicro: 30_000_000 };
const SOUND = new Map([
  ['req_1', detailOf([])],
  ['req_2', detailOf(WHOLE)],
]);

/** The checks that fail. */
function faultsOf(changes: Partial<Driven & typeof BOOKED> = {}, book = SOUND): string[] {
  const checks = compareDrive({ records: RECORDS, planned: 2, ...changes }, { ...BOOKED, ...changes }, book);
  return checks.filter(({ passed }) => !passed).map(({ text }) => text);
}

describe('compareDrive', () => {
  it('finds nothing in a sound drive, in whatever order its records come', () => {
    expect(faultsOf()).toEqual([]);
    expect(faultsOf({ records: RECORDS.toReversed() })).toEqual([]);
    expect(
      faultsOf({}, new Map(SOUND).set('req_2', detailOf([{ role: 'system', content: 'Grade: 7' }, ...WHOLE]))),
    ).toEqual([]);
  });

  it.each([
    ['the answer is missing', [user('Question 1'), user('Question 2')]],
    ['the answer is another one', [user('Question 1'), assistant('Answer 9'), user('Question 2')]],
    ['the history came twice', [user('Question 1'), assistant('Answer 1'), ...WHOLE.slice(1)]],
    ['nothing reached the provider', []],
  ])('names the turn whose history is wrong when %s', (_, received) => {
    const faults = faultsOf({}, new Map(SOUND).set('req_2', detailOf(received)));

    expect(faults).toEqual([expect.stringMatching(/earlier turns.* conversation 81, turn 2/)]);
  });

  it('finds an answer that is missing, an error or without text', () => {
    expect(faultsOf({ planned: 3 })).toEqual([expect.stringContaining('1 turns that were not sent')]);
    expect(faultsOf({ records: [recordOf(1, { error: 'timeout' }), recordOf(2)] })).toEqual([
      expect.stringContaining('turn 1 (timeout)'),
    ]);
    expect(faultsOf({ records: [recordOf(1), recordOf(2, { text: '' })] })).toEqual([
      expect.stringContaining('turn 2 (no text)'),
    ]);
  });

  it('finds a request or an answer that was flagged', () => {
    expect(faultsOf({ records: [recordOf(1), recordOf(2, { finishReason: 'content_filter' })] })).toEqual([
      expect.stringContaining('flagged'),
    ]);
  });

  it('finds a provider that was called twice', () => {
    expect(faultsOf({}, new Map(SOUND).set('req_1', detailOf([], { calls: 2 })))).toEqual([
      expect.stringContaining('called once'),
    ]);
  });

  it('compares the ledger and the balance with what the provider counted, at the rates of each tier', () => {
    const records = [recordOf(1), recordOf(2, { model: 'oloid' })];

    expect(faultsOf({ records, chargedMicro: 75_000_000, fallenMicro: 75_000_000 })).toEqual([]);
    expect(faultsOf({ records, chargedMicro: 75_000_000, fallenMicro: 0 })).toEqual([
      expect.stringMatching(/75000000 micro-credits\): not so for the balance, which fell by 0$/),
    ]);
    expect(faultsOf({ entries: 3, tokens: 29 })).toEqual([expect.stringContaining('3 entries; 29 tokens')]);
  });
});
