import { describe, expect, it } from '@jest/globals';

import { cutAtBlank } from '../../../../workers/providers/anthropic.ts';
import { EnoughError } from '../../../../workers/providers/post-to-provider.ts';
import type { ProviderEvent } from '../../../../workers/providers/provider.ts';

const END: ProviderEvent = { kind: 'end', finishReason: 'length', usage: { promptTokens: 1, completionTokens: 2 } };

function cut(stops: string[], ...texts: string[]) {
  const events: ProviderEvent[] = [];
  const sink = cutAtBlank((event) => events.push(event), stops);
  let left = false;
  try {
    for (const text of texts) sink({ kind: 'text', text });
    sink(END);
  } catch (error) {
    if (!(error instanceof EnoughError)) throw error;
    left = true;
  }
  const parts = events.flatMap((event) => (event.kind === 'text' ? event.text : []));
  return { parts, end: events.at(-1), left };
}

describe('a blank stop sequence', () => {
  it('ends the answer ahead of it, and the call with it', () => {
    const { parts, end, left } = cut(['\n'], 'One ', 'line.\nAnother', ' one.');

    expect(parts).toEqual(['One ', 'line.']);
    expect(end).toEqual({ kind: 'end', finishReason: 'stop', usage: undefined });
    expect(left).toBe(true);
  });

  it('is found where it lies across two pieces', () => {
    expect(cut(['\n\n'], 'One.\n', '\nTwo.').parts.join('')).toBe('One.');
  });

  it('a blank stop sequence is the first of several', () => {
    expect(cut(['\n\n', '\t'], 'One.\tTwo.\n\nThree.').parts.join('')).toBe('One.');
  });

  it('changes nothing of an answer without it, white space at its end included', () => {
    const { parts, end } = cut(['\n\n'], '😀 One.\n', 'Two.\n');

    expect(parts.join('')).toBe('😀 One.\nTwo.\n');
    expect(end).toBe(END);
  });

  it('holds back no more than its own beginning', () => {
    expect(cut(['\n\n'], 'One. \n', 'Two.').parts).toEqual(['One. ', '\nTwo.']);
    expect(cut(['\n'], 'One. ', 'Two.').parts).toEqual(['One. ', 'Two.']);
  });
});
