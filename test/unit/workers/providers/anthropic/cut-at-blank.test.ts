import { describe, expect, it } from '@jest/globals';

import { cutAtBlank } from '../../../../../workers/providers/anthropic/response.ts';
import type { ProviderEvent } from '../../../../../workers/providers/provider.ts';

const END: ProviderEvent = { kind: 'end', finishReason: 'length', usage: { promptTokens: 1, completionTokens: 2 } };

async function cut(stops: string[], ...texts: string[]) {
  let left = false;
  async function* source(): AsyncGenerator<ProviderEvent> {
    try {
      for (const text of texts) yield await Promise.resolve({ kind: 'text' as const, text });
      yield END;
    } finally {
      left = true;
    }
  }
  const events: ProviderEvent[] = [];
  for await (const event of cutAtBlank(source(), stops)) events.push(event);
  const parts = events.flatMap((event) => (event.kind === 'text' ? event.text : []));
  return { parts, end: events.at(-1), left };
}

describe('a blank stop sequence', () => {
  it('ends the answer ahead of it, and the call with it', async () => {
    const { parts, end, left } = await cut(['\n'], 'One ', 'line.\nAnother', ' one.');

    expect(parts).toEqual(['One ', 'line.']);
    expect(end).toEqual({ kind: 'end', finishReason: 'stop', usage: undefined });
    expect(left).toBe(true);
  });

  it('is found where it lies across two pieces', async () => {
    expect((await cut(['\n\n'], 'One.\n', '\nTwo.')).parts.join('')).toBe('One.');
  });

  it('a blank stop sequence is the first of several', async () => {
    expect((await cut(['\n\n', '\t'], 'One.\tTwo.\n\nThree.')).parts.join('')).toBe('One.');
  });

  it('changes nothing of an answer without it, white space at its end included', async () => {
    const { parts, end } = await cut(['\n\n'], '😀 One.\n', 'Two.\n');

    expect(parts.join('')).toBe('😀 One.\nTwo.\n');
    expect(end).toBe(END);
  });

  it('holds back no more than its own beginning', async () => {
    expect((await cut(['\n\n'], 'One. \n', 'Two.')).parts).toEqual(['One. ', '\nTwo.']);
    expect((await cut(['\n'], 'One. ', 'Two.')).parts).toEqual(['One. ', 'Two.']);
  });
});
