import { describe, expect, it } from '@jest/globals';

import { wordsOf } from '../../../../shared/contracts/events.ts';
import { createGenerate } from '../../../../workers/pipeline/generate.ts';
import type { Routed } from '../../../../workers/pipeline/stage.ts';
import { ProviderError } from '../../../../workers/providers/provider.ts';
import type { ProviderAdapter } from '../../../../workers/providers/provider.ts';
import { createEventBus } from '../../../../shared/lifecycle/event-bus.ts';
import { idleLease, idleRun } from '../../../support/idle-run.ts';
import { plainEnvelope } from '../../../support/plain-envelope.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

describe('generate', () => {
  it('shows nothing of a call that was replaced while its text waited to be granted', async () => {
    const asked = Promise.withResolvers<undefined>();
    let granted = 32;
    const lease = idleLease({
      cover: () => Promise.resolve(false),
      granted: () => granted,
      async grant() {
        // Redis answers once the next call is under way.
        await asked.promise;
        granted = 4_000;
      },
    });
    let calls = 0;
    const adapter: ProviderAdapter = {
      async generate(_provider, _call, sink) {
        calls += 1;
        if (calls === 1) {
          sink({ kind: 'text', text: 'wrong '.repeat(100) });
          throw new ProviderError('transient', 'The provider failed');
        }
        asked.resolve(undefined);
        await new Promise(setImmediate);
        sink({ kind: 'text', text: 'right' });
        sink({ kind: 'end', finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 1 } });
      },
    };
    const shown: string[] = [];
    const limits = { maxRetries: 1, timeoutMs: 5_000, firstTokenTimeoutMs: 5_000 };
    const provider = { name: 'p', kind: 'openai' as const, baseUrl: '', ...limits };
    const target = { provider: 'p', model: 'm', weight: 1, priority: 1, contextWindow: 100_000 };
    const generate = createGenerate({
      adapters: { openai: adapter, anthropic: adapter, simulated: adapter },
      breakers: { guard: (_provider, call) => call(() => undefined), isPassable: () => true },
      capacities: {
        enter: () =>
          Promise.resolve({ recordText: () => undefined, recordLimits: () => undefined, leave: () => undefined }),
        hasPlace: () => true,
        isServing: () => false,
        seeksCeiling: () => false,
      },
      openWindow: ({}, { release }) => ({ push: release, end: () => Promise.resolve(), close: () => undefined }),
      openWriter: () => ({
        write: (text) => shown.push(wordsOf(text)),
        scheduleRead: () => undefined,
        settle: () => Promise.resolve(),
      }),
      events: createEventBus(() => undefined),
      betweenTokensMs: 5_000,
      slowAnswerMs: 5_000,
      clock: { now: Date.now },
      log: createRecordingLog(),
    });
    const run: Routed = {
      ...idleRun({ lease, envelope: plainEnvelope({ maxTokens: 4_096 }) }),
      ...{ entity: undefined, history: [], submitted: [], context: [] },
      prompt: { instruction: undefined, history: [], submitted: [{ role: 'user', content: 'Hello' }] },
      targets: [{ provider, target }],
    };

    const { outcome } = await generate(run);

    expect(calls).toBe(2);
    expect(shown.join('')).toBe('right');
    expect(run.answer.text).toBe('right');
    expect(outcome.finishReason).toBe('stop');
  });
});
