import { describe, expect, it } from '@jest/globals';

import { parseConversations } from '../../../../scripts/drive/conversations.ts';

describe('parseConversations', () => {
  it('sends each of the turns as a request of its own', () => {
    const [conversation] = parseConversations('{"question_id": 81, "turns": ["First", "Second"]}');

    expect(conversation).toEqual({
      id: '81',
      turns: [[{ role: 'user', content: 'First' }], [{ role: 'user', content: 'Second' }]],
    });
  });

  it('sends the messages of a line as one request', () => {
    const messages = [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'Hi' },
    ];

    expect(parseConversations(JSON.stringify({ id: 'a', messages }))).toEqual([{ id: 'a', turns: [messages] }]);
  });

  it('names a conversation without an id by the number of its line', () => {
    const ids = parseConversations('{"turns":["a"]}\n\n{"turns":["b"]}\n').map(({ id }) => id);

    expect(ids).toEqual(['1', '3']);
  });

  it.each([
    ['{"turns":["a"]}\nnope', /^Line 2 is not JSON\.$/],
    ['{"turns":["a"]}\n\n[]', /^Line 3: .* must be of type object\.$/],
    ['{"turns":[]}', /^Line 1: "turns" must contain at least 1 items\.$/],
    ['{"turns":["a",""]}', /^Line 1: "turns\[1\]" is not allowed to be empty\.$/],
    ['{"turns":["a",1]}', /^Line 1: "turns\[1\]" must be a string\.$/],
    ['{"messages":[{"role":"user"}]}', /^Line 1: "messages\[0\]\.content" is required\.$/],
    ['{"turns":["a"],"messages":[{"role":"user","content":"a"}]}', /^Line 1: .* \[turns, messages\]\.$/],
    ['{"id":{},"turns":["a"]}', /^Line 1: "id" must be one of \[string, number\]\.$/],
    [' \n', /^The file holds no conversation\.$/],
  ])('says in one sentence what is wrong with %j', (text, sentence) => {
    expect(() => parseConversations(text)).toThrow(sentence);
  });
});
