import { describe, expect, it } from '@jest/globals';

import { mediaTokensOf, textOf, textsBeside } from '../../../../shared/contracts/message-text.ts';

describe('what a model reads of a request', () => {
  it('is a plain message’s content and nothing else', () => {
    expect(textOf({ role: 'user', content: 'Hi' })).toBe('Hi');
    expect(textOf({ role: 'assistant', content: '' })).toBe('');
  });

  it('includes calls of tools of any kind, and whatever words the message has besides', () => {
    const sent = {
      role: 'assistant',
      name: 'Ann',
      refusal: 'No.',
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'add', arguments: '{"x":1}' } },
        { id: 'b', type: 'custom', custom: { name: 'run', input: 'ls' }, function: { name: '', arguments: 'rm' } },
        null,
      ],
      documents: [{ text: 'Rivers' }],
    };

    const read = ['Text', 'add', '{"x":1}', 'a', 'function', 'rm', 'run', 'ls', 'b', 'custom', 'Ann', 'No.'];
    expect(textOf({ role: 'assistant', content: 'Text', sent })).toBe([...read, '[{"text":"Rivers"}]'].join('\n'));
  });

  it('includes the id of a call and the words beside the data of parts', () => {
    const file = { type: 'file', file: { file_data: 'data:a/b;base64,AAAA', filename: 'a.pdf' } };
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' }, alt: 'A map' };
    const sent = { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'Hi' }, file, image, null] };

    expect(textOf({ role: 'tool', content: 'Hi', sent })).toBe('Hi\na.pdf\nA map\nlow\ncall_1');
  });

  it('includes definitions of tools, predictions and the schema beside the messages', () => {
    const passed = {
      temperature: 1,
      tools: [{ type: 'function', function: { name: 'add' } }],
      prediction: 'x',
      web_search_options: {},
      n_ctx: 7,
    };
    const schema = { name: 's', schema: { type: 'object' }, strict: true };

    expect(textsBeside({ passed, schema })).toEqual([JSON.stringify(passed.tools), 'x', '{}', JSON.stringify(schema)]);
    expect(textsBeside({})).toEqual([]);
  });
});

/** The head of a PNG of this size, which has all that is read of it. */
function pngOf(width: number, height: number): string {
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32BE(width);
  sizes.writeUInt32BE(height, 4);
  const head = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
  return `data:image/png;base64,${Buffer.concat([head, sizes, Buffer.alloc(5)]).toString('base64')}`;
}
const GIF = 'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';

describe('the tokens of what is not text', () => {
  it.each([
    [{ type: 'text', text: 'Hi' }, 0],
    [{ type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } }, 85],
    [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }, 1_445],
    [{ type: 'image_url', image_url: { url: pngOf(1_024, 1_024) } }, 765],
    [{ type: 'image_url', image_url: { url: pngOf(4_096, 8_192), detail: 'high' } }, 1_105],
    [{ type: 'image_url', image_url: { url: pngOf(4_096, 8_192), detail: 'low' } }, 85],
    [{ type: 'image_url', image_url: { url: pngOf(4_000_000_000, 1) } }, 765],
    [{ type: 'image_url', image_url: { url: GIF } }, 255],
    [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }, 1_445],
    [{ type: 'input_audio', input_audio: { format: 'wav', data: 'A'.repeat(42_668) } }, 11],
    [{ type: 'input_audio', input_audio: { format: 'mp3', data: 'A'.repeat(42_668) } }, 81],
    [{ type: 'file', file: { file_data: `data:application/pdf;base64,${'A'.repeat(4_268)}` } }, 201],
    [null, 0],
  ])('are counted by the published rules, without fetching: %j', (part, tokens) => {
    expect(mediaTokensOf({ role: 'user', content: '', sent: { role: 'user', content: [part] } })).toBe(tokens);
  });

  it('are none in a message without parts', () => {
    expect(mediaTokensOf({ role: 'user', content: 'Hi' })).toBe(0);
  });
});
