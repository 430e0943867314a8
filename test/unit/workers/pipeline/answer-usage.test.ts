import { describe, expect, it } from '@jest/globals';

import type { ChatMessage } from '../../../../shared/contracts/chat-request.ts';
import type { ReportedUsage } from '../../../../workers/providers/provider.ts';
import { plausibleUsage, estimateUsage } from '../../../../workers/pipeline/spending.ts';

describe('a provider’s count', () => {
  const asked = [
    { role: 'system', content: 'é'.repeat(50) },
    { role: 'user', content: 'x'.repeat(92) },
  ] as const;
  /** 192 bytes and two messages. */
  const promptMost = 192 + 2 * 4 + 4_096;

  const prompt = { messages: asked as readonly ChatMessage[], contextWindow: 8_000 };
  const believed = (said: ReportedUsage, text = 'text', messages = prompt.messages) =>
    plausibleUsage(said, { ...prompt, messages }, text, 10);

  it.each([[{ promptTokens: 1, completionTokens: 1 }], [{ promptTokens: promptMost, completionTokens: 10 }]])(
    'is believed where it can be true: %j',
    (said) => {
      expect(believed(said)).toEqual(said);
    },
  );

  it.each([11, 20, 36])('of %d for an answer of at most 10 is cut', (completionTokens) => {
    const cut = { promptTokens: 5, completionTokens: 10, estimated: true };

    expect(believed({ promptTokens: 5, completionTokens })).toEqual(cut);
  });

  it.each([[{ promptTokens: promptMost + 1, completionTokens: 1 }], [{ promptTokens: 1, completionTokens: 37 }]])(
    'is none where it cannot be true: %j',
    (said) => {
      expect(believed(said)).toBeUndefined();
    },
  );

  it.each([
    { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO', detail: 'low' } },
    { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } },
    { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE' } },
  ])('of a prompt with $type may fill the window, and no more', (part) => {
    const sent = { role: 'user' as const, content: 'x', sent: { role: 'user', content: [part] } };
    const filled = { promptTokens: 8_000, completionTokens: 1 };

    expect(believed(filled, 'text', [sent])).toEqual(filled);
    expect(believed({ ...filled, promptTokens: 8_001 }, 'text', [sent])).toBeUndefined();
  });

  it.each([[{ promptTokens: 5, completionTokens: 0 }], [{ promptTokens: 0, completionTokens: 5 }]])(
    'of zero beside text is none: %j',
    (said) => {
      expect(believed(said)).toBeUndefined();
    },
  );

  it('of zero for an answer without text is believed', () => {
    expect(believed({ promptTokens: 5, completionTokens: 0 }, '')).toEqual({ promptTokens: 5, completionTokens: 0 });
  });

  it('of reasoning has no bound but max_tokens, where the rest can be true', () => {
    const cut = { promptTokens: 5, completionTokens: 10, estimated: true };

    expect(believed({ promptTokens: 5, completionTokens: 309, reasoningTokens: 300 })).toEqual({
      ...cut,
      reasoningTokens: 10,
    });
    expect(believed({ promptTokens: 5, completionTokens: 900 }, '')).toEqual(cut);
    expect(believed({ promptTokens: 5, completionTokens: 337, reasoningTokens: 300 })).toBeUndefined();
  });

  it.each(['', 'text'])('of more reasoning than any model does is none (%j)', (text) => {
    const said = { promptTokens: 5, completionTokens: 1_000_000_003, reasoningTokens: 1_000_000_000 };

    expect(believed(said, text)).toBeUndefined();
  });
});

it('counts the markers of a chat format as the ordinary text they are', async () => {
  const { completionTokens } = await estimateUsage([], 'before <|endoftext|> after', 100);

  expect(completionTokens).toBeGreaterThan(3);
});
