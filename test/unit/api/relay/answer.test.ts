import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { answerHead, completeAnswer as jsonOf, createSseWriter } from '../../../../api/relay/sse.ts';
import { decodeEntry, encodeEntry, eventsOf, firstSeqOf, toDelta } from '../../../../shared/contracts/events.ts';
import type { Increment, StreamEntry, Terminal } from '../../../../shared/contracts/events.ts';

const HEAD = answerHead({ requestId: 'req_1', acceptedAt: 1_700_000_000_999, tier: 'mobius' });
const STOP: Terminal = { finishReason: 'stop', usage: { promptTokens: 3, completionTokens: 4 } };
const FAILED: Terminal = {
  finishReason: 'error',
  usage: { promptTokens: 3, completionTokens: 1, estimated: true },
  error: { code: 'model_unavailable', message: 'Say "please".', retryAfterSeconds: 5 },
};

/** What a reader gets of an entry that was written and read again. */
function entryOf(lastSeq: number, deltas: Increment[], terminal?: Terminal): StreamEntry {
  return decodeEntry(lastSeq, encodeEntry(deltas, terminal));
}

const completeAnswer = (...parts: Parameters<typeof jsonOf>) => jsonOf(...parts) as string;

const ANY_TEXT = fc.string({ unit: 'binary' });
const ANY_DELTA = fc
  .tuple(fc.nat({ max: 2 }), ANY_TEXT)
  .map(([index, json]) => toDelta({ tool_calls: [{ index, function: { arguments: json } }] }));

describe('the bytes of a stream', () => {
  it('are an id line, a data line and an empty line for each event; the role is in the first', () => {
    expect(createSseWriter(HEAD).events(entryOf(2, ['Hi', ' "you"\n']), 1)).toBe(
      'id: 1\n' +
        'data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"mobius",' +
        '"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\n' +
        'id: 2\n' +
        'data: {"id":"req_1","object":"chat.completion.chunk","created":1700000000,"model":"mobius",' +
        '"choices":[{"index":0,"delta":{"content":" \\"you\\"\\n"},"finish_reason":null}]}\n\n',
    );
  });

  it('are JSON where the first delta says nothing beside the fields of its choice', () => {
    const [, data = ''] = createSseWriter(HEAD)
      .events(entryOf(1, [toDelta({}, { logprobs: {} })]), 1)
      .split('data: ');

    expect(JSON.parse(data)).toMatchObject({ choices: [{ delta: { role: 'assistant' }, logprobs: {} }] });
  });

  it('have no id lines on the route of OpenAI’s clients, and only finish reasons that they know', () => {
    const sse = createSseWriter(HEAD, { usage: 'last chunk' });
    const cancelled: Terminal = { ...STOP, finishReason: 'cancelled' };
    const end = '"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,';

    expect(sse.events(entryOf(1, ['Hi']), 1)).toMatch(/^data: .*"content":"Hi".*\n\n$/);
    expect(sse.events(entryOf(2, [], FAILED), 1)).toMatch(/^data: .*"finish_reason":"stop".*"error":{"code":"model_un/);
    expect(sse.events(entryOf(2, [], FAILED), 1)).toMatch(/\n\ndata: {"error":{"code":"model_unavailable",.*}}\n\n$/);
    // Their readers look for the role in the first chunk, also where there is no other.
    expect(sse.events(entryOf(2, [], STOP), 1)).toContain(
      '"delta":{"role":"assistant","content":""},"finish_reason":"stop"',
    );
    const text = sse.events(entryOf(3, [], cancelled), 1);
    expect(text).toContain(`${end}"completion_tokens":4,"total_tokens":7},"error":{"code":"conflict",`);
    expect(text.endsWith('}}\n\ndata: [DONE]\n\n')).toBe(true);
  });

  it('have their usage in a chunk of its own, or nowhere, for a client of OpenAI that says so', () => {
    const own = createSseWriter(HEAD, { usage: 'own chunk' }).events(entryOf(3, ['Hi'], STOP), 1);
    const none = createSseWriter(HEAD, { usage: 'none' }).events(entryOf(3, ['Hi'], STOP), 1);
    const failed = createSseWriter(HEAD, { usage: 'own chunk' }).events(entryOf(1, [], FAILED), 1);

    const [text, end, usage, done] = own.split('\n\n');
    expect(text).toMatch(/"finish_reason":null}\],"usage":null}$/);
    expect(end).toMatch(/"finish_reason":"stop"}\],"usage":null}$/);
    expect(usage).toMatch(/"choices":\[\],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}$/);
    expect(done).toBe('data: [DONE]');
    expect(createSseWriter(HEAD, { usage: 'own chunk' }).events(entryOf(3, ['Hi'], STOP), 3)).toBe(
      `${String(usage)}\n\n${String(done)}\n\n`,
    );
    expect(none).not.toContain('usage');
    expect(failed).toMatch(/"usage":{"prompt_tokens":3,.*"error":{/);
  });

  it('are the same whatever the entries and wherever a reader goes on', () => {
    const sse = createSseWriter(HEAD);
    const cuts = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 6 });

    fc.assert(
      fc.property(fc.array(fc.oneof(ANY_TEXT, ANY_DELTA), { maxLength: 12 }), cuts, (deltas, sizes) => {
        const whole = sse.events(entryOf(deltas.length + 2, deltas, STOP), 1);
        let seq = 0;
        let joined = '';
        for (let index = 0; seq < deltas.length; index += 1) {
          const part = deltas.slice(seq, seq + (sizes[index % sizes.length] ?? 1));
          seq += part.length;
          joined += sse.events(entryOf(seq, part), 1);
        }
        joined += sse.events(entryOf(seq + 2, [], STOP), 1);
        expect(joined).toBe(whole);
        const events = whole.split(/(?<=\n\n)/);
        expect(events).toHaveLength(deltas.length + 2);
        for (let from = 1; from <= events.length; from += 1) {
          expect(sse.events(entryOf(deltas.length + 2, deltas, STOP), from)).toBe(events.slice(from - 1).join(''));
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('a complete answer', () => {
  it('of a cancelled request says so in `error` to OpenAI’s clients, in its finish reason to others', () => {
    const cancelled: Terminal = { ...STOP, finishReason: 'cancelled' };
    const { deltas } = entryOf(1, ['Hi']);

    expect(JSON.parse(completeAnswer(HEAD, deltas, cancelled))).toMatchObject({
      choices: [{ finish_reason: 'cancelled' }],
    });
    expect(JSON.parse(completeAnswer(HEAD, deltas, cancelled, { usage: 'last chunk' }))).toMatchObject({
      choices: [{ finish_reason: 'stop', message: { content: 'Hi' } }],
      error: { code: 'conflict', type: 'invalid_request_error', request_id: 'req_1' },
    });
  });

  it('holds the text of the increments, whatever is in them and wherever they were cut', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (texts) => {
        const { deltas } = entryOf(texts.length, texts);
        const { choices } = JSON.parse(completeAnswer(HEAD, deltas, STOP)) as {
          choices: { message: { content: string } }[];
        };
        expect(choices[0]?.message.content).toBe(texts.join(''));
      }),
    );
  });
});

describe('a complete answer that calls tools', () => {
  it('has each call whole, wherever its arguments were cut, and no content where there is no text', () => {
    const begin = (index: number) =>
      toDelta({
        tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } }],
      });

    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat({ max: 1 }), fc.string())), fc.array(fc.string()), (pieces, texts) => {
        const args = pieces.map(([index, json]) => toDelta({ tool_calls: [{ index, function: { arguments: json } }] }));
        const { deltas } = entryOf(100, [begin(0), ...texts, begin(1), ...args]);
        const { choices } = JSON.parse(completeAnswer(HEAD, deltas, { ...STOP, finishReason: 'tool_calls' })) as {
          choices: { message: object; finish_reason: string }[];
        };
        const call = (of: number) => ({
          id: `call_${of}`,
          type: 'function',
          function: { name: 'f', arguments: pieces.flatMap(([index, json]) => (index === of ? [json] : [])).join('') },
        });
        expect(choices[0]).toEqual({
          index: 0,
          message: { role: 'assistant', content: texts.join('') || null, tool_calls: [call(0), call(1)] },
          finish_reason: 'tool_calls',
        });
      }),
    );
  });
});

describe('an entry of a stream', () => {
  it('an entry of a stream is read as it was written, for any text', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1 }), fc.boolean(), (texts, ends) => {
        const entry = entryOf(100, texts, ends ? STOP : undefined);
        expect(entry.deltas.map((literal) => JSON.parse(literal) as unknown)).toEqual(texts);
        expect(entry.terminal).toEqual(ends ? STOP : undefined);
        expect(firstSeqOf(entry)).toBe(100 - texts.length - (ends ? 2 : 0) + 1);
      }),
    );
  });

  it('an entry of a stream is nothing where nothing was written', () => {
    expect(decodeEntry(0, '')).toEqual({ lastSeq: 0, deltas: [] });
  });

  it.each([
    [STOP, 2],
    [FAILED, 1],
  ])('an entry of a stream counts its end as the events it becomes', (terminal, count) => {
    expect(eventsOf(terminal)).toBe(count);
    expect(firstSeqOf(entryOf(count, [], terminal))).toBe(1);
  });
});
