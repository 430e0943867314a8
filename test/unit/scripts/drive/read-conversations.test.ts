import { describe, expect, it } from '@jest/globals';

import { parseConversations } from '../../../../scripts/drive/read-conversations.ts';

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
    ['{"turns":["a"]}\n\n[]', /^Line 3 must be a JSON object\.$/],
    ['{"turns":[]}', /^Line 1 must have "turns"/],
    ['{"turns":["a",""]}', /^Line 1 must have "turns"/],
    ['{"turns":["a",1]}', /^Line 1 must have "turns"/],
    ['{"messages":[{"role":"user"}]}', /^Line 1 must have "turns"/],
    ['{"turns":["a"],"messages":[]}', /^Line 1 must have either/],
    ['{"id":{},"turns":["a"]}', /^Line 1 must have a text or a number as its id\.$/],
    [' \n', /^The file holds no conversation\.$/],
  ])('says in one sentence what is wrong with %j', (text, sentence) => {
    expect(() => parseConversations(text)).toThrow(sentence);
  });
});
