import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import type { ChatMessage } from '../../../../shared/contracts/chat-request.ts';
import { HISTORY_MESSAGES_MAX, mergeHistory } from '../../../../shared/domain/history.ts';

const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content });
const system = (content: string): ChatMessage => ({ role: 'system', content });

/** A conversation of `turns` exchanges, every message different. */
function exchanges(turns: number): ChatMessage[] {
  return Array.from({ length: turns }, (_, turn) => [user(`question ${turn}`), assistant(`answer ${turn}`)]).flat();
}

describe('history and submitted messages', () => {
  it('are joined as they are when they share nothing', () => {
    const merged = mergeHistory(exchanges(2), [user('new')]);

    expect(merged).toEqual({ history: exchanges(2), submitted: [user('new')], unseen: [user('new')] });
  });

  it('know a resent message by half an emoji, which MongoDB keeps as a replacement character', () => {
    const history = [user('cut short \u{fffd}'), assistant('Pardon?')];

    const merged = mergeHistory(history, [user('cut short \ud83d'), assistant('Pardon?'), user('new')]);

    expect(merged).toEqual({ history, submitted: [user('new')], unseen: [user('new')] });
  });

  it('keep a message that merely repeats an earlier one', () => {
    const history = [user('yes'), assistant('Really?')];

    expect(mergeHistory(history, [user('yes')])).toEqual({ history, submitted: [user('yes')], unseen: [user('yes')] });
  });

  it('keep everything when the copy is not at the beginning of what is submitted', () => {
    const submitted = [user('first'), ...exchanges(1), user('new')];

    expect(mergeHistory(exchanges(1), submitted)).toEqual({ history: exchanges(1), submitted, unseen: submitted });
  });

  it('tell messages of other roles and other spelling apart', () => {
    const history = [user('a'), assistant('b')];
    const submitted = [user('a'), user('b'), user('new')];

    expect(mergeHistory(history, submitted).submitted).toEqual(submitted);
    expect(mergeHistory(history, [user('a'), assistant('B'), user('new')]).submitted).toHaveLength(3);
  });

  it('send system messages but never store them, wherever they stand', () => {
    const submitted = [system('Be kind.'), ...exchanges(1), system('Be brief.'), user('new')];

    expect(mergeHistory(exchanges(1), submitted)).toEqual({
      history: exchanges(1),
      submitted: [system('Be kind.'), system('Be brief.'), user('new')],
      unseen: [user('new')],
    });
  });

  it('find the overlap of a full history in a longer copy, and send what the history has lost', () => {
    const all = exchanges(30);
    const history = all.slice(-HISTORY_MESSAGES_MAX);

    const merged = mergeHistory(history, [...all, user('new')]);

    expect(merged).toEqual({ history: all, submitted: [user('new')], unseen: [user('new')] });
  });

  it('history and submitted messages take the longest overlap', () => {
    const history = [user('a'), assistant('b'), user('a'), assistant('b')];

    expect(mergeHistory(history, [...history, user('new')]).submitted).toEqual([user('new')]);
  });

  it('leave nothing to send when the caller sends only what is known', () => {
    const merged = mergeHistory(exchanges(1), exchanges(1));

    expect(merged).toEqual({ history: exchanges(1), submitted: [], unseen: [] });
  });

  it('give the whole conversation in order, however much of it each call resends', () => {
    const turn = fc.record({ resent: fc.integer({ min: 0, max: 99 }), withSystem: fc.boolean() });

    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 45 }), (turns) => {
        const all: ChatMessage[] = [];
        let stored: ChatMessage[] = [];
        turns.forEach(({ resent, withSystem }, index) => {
          const asked = user(`question ${index}`);
          const copy = resent === 0 ? [] : all.slice(-resent);
          const merged = mergeHistory(stored, [...(withSystem ? [system('Rules.')] : []), ...copy, asked]);
          const spoken = [...merged.history, ...merged.submitted].filter(({ role }) => role !== 'system');
          const known = Math.max(stored.length, copy.length);
          expect(spoken).toEqual([...(known === 0 ? [] : all.slice(-known)), asked]);
          expect(merged.unseen).toEqual([asked]);
          all.push(asked, assistant(`answer ${index}`));
          stored = [...stored, ...merged.unseen, assistant(`answer ${index}`)].slice(-HISTORY_MESSAGES_MAX);
        });
      }),
      { numRuns: 60 },
    );
  });
});

describe('a conversation with calls of tools', () => {
  const asking: ChatMessage = {
    role: 'assistant',
    content: '',
    sent: { role: 'assistant', tool_calls: [{ id: 'a' }] },
  };
  const result: ChatMessage = { role: 'tool', content: '22', sent: { role: 'tool', tool_call_id: 'a', content: '22' } };
  const round = [user('weather?'), asking, result];

  it('is remembered without calls and results, which make no sense apart', () => {
    expect(mergeHistory([], round)).toEqual({ history: [], submitted: round, unseen: [user('weather?')] });
  });

  it('goes on with the results, whether the caller sends all of it or the exchange alone', () => {
    const merged = { history: [user('weather?')], submitted: [asking, result], unseen: [] };

    expect(mergeHistory([user('weather?')], round)).toEqual(merged);
    expect(mergeHistory([user('weather?')], [asking, result])).toEqual(merged);
  });

  it('is the caller’s copy where that is resent, as it says more', () => {
    const stored = [user('hello'), assistant('hi'), user('weather?'), assistant('22 degrees')];
    const resent = [...round, assistant('22 degrees'), user('thanks')];

    expect(mergeHistory(stored, resent)).toEqual({
      history: [user('hello'), assistant('hi'), ...round, assistant('22 degrees')],
      submitted: [user('thanks')],
      unseen: [user('thanks')],
    });
  });
});
