import { describe, expect, it } from '@jest/globals';

import type { TurnRecord } from '../../../../scripts/drive/send-conversations.ts';
import {
  checkAnswered,
  checkCalledOnce,
  checkCharged,
  checkHistory,
  checkUnflagged,
  providerCredits,
} from '../../../../scripts/drive/verify.ts';
import type { RequestDetail } from '../../../../scripts/simulated-provider/stats.ts';

function recordOf(turn: number, changes: Partial<TurnRecord> = {}): TurnRecord {
  return {
    requestId: `req_${turn}`,
    model: 'mobius',
    text: `Answer ${turn}`,
    finishReason: 'stop',
    tokens: { prompt: 10, completion: 5 },
    error: undefined,
    latencyMs: 1,
    firstTokenMs: undefined,
    waits: 0,
    conversation: '81',
    entityId: 'drive-1-81',
    turn,
    turns: 2,
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

describe('checkHistory', () => {
  it('passes when the second turn came behind the first and its answer', () => {
    const received = [{ role: 'system', content: 'Grade: 7' }, ...WHOLE];

    expect(checkHistory(RECORDS, new Map([['req_2', detailOf(received)]])).passed).toBe(true);
  });

  it('passes when the records come in another order than they were sent', () => {
    expect(checkHistory(RECORDS.toReversed(), new Map([['req_2', detailOf(WHOLE)]])).passed).toBe(true);
  });

  it.each([
    ['the answer is missing', [user('Question 1'), user('Question 2')]],
    ['the answer is another one', [user('Question 1'), assistant('Answer 9'), user('Question 2')]],
    ['the history came twice', [user('Question 1'), assistant('Answer 1'), ...WHOLE.slice(1)]],
    ['nothing reached the provider', []],
  ])('fails and names the turn when %s', (_, received) => {
    expect(checkHistory(RECORDS, new Map([['req_2', detailOf(received)]]))).toMatchObject({
      passed: false,
      text: expect.stringContaining('conversation 81, turn 2'),
    });
  });
});

describe('the other checks', () => {
  it('fails when an answer is missing, an error or without text', () => {
    expect(checkAnswered(RECORDS, 2).passed).toBe(true);
    expect(checkAnswered(RECORDS, 3).passed).toBe(false);
    expect(checkAnswered([recordOf(1, { error: 'timeout' })], 1).text).toContain('turn 1 (timeout)');
    expect(checkAnswered([recordOf(1, { text: '' })], 1).passed).toBe(false);
  });

  it('fails when a request or an answer was flagged', () => {
    expect(checkUnflagged(RECORDS).passed).toBe(true);
    expect(checkUnflagged([recordOf(1, { error: 'content_policy_violation' })]).passed).toBe(false);
    expect(checkUnflagged([recordOf(1, { finishReason: 'content_filter' })]).passed).toBe(false);
  });

  it('fails when the provider was called twice or not at all', () => {
    const twice = new Map([['req_1', detailOf([], { calls: 2 })]]);

    expect(checkCalledOnce([recordOf(1)], twice).passed).toBe(false);
    expect(checkCalledOnce([recordOf(1)], new Map()).passed).toBe(false);
    expect(checkCalledOnce([recordOf(1)], new Map([['req_1', detailOf([])]])).passed).toBe(true);
  });

  it('compares the charge with what the provider counted, at the rates of each tier', () => {
    const records = [recordOf(1), recordOf(2, { model: 'oloid' })];
    const book = new Map([
      ['req_1', detailOf([])],
      ['req_2', detailOf([])],
    ]);
    const rates = { mobius: { prompt: 1, completion: 1 }, oloid: { prompt: 4, completion: 2 } };

    const counted = providerCredits(records, book, rates);

    expect(counted).toBe(15 + 50);
    expect(checkCharged(65.0000000001, counted).passed).toBe(true);
    expect(checkCharged(64, counted).passed).toBe(false);
  });
});
