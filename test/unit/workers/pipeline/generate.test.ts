import { describe, expect, it } from '@jest/globals';

import { wordsOf } from '../../../../shared/contracts/events.ts';
import { createGenerate } from '../../../../workers/pipeline/generate.ts';
import type { Capacities } from '../../../../workers/pipeline/capacities.ts';
import type { Routed } from '../../../../workers/pipeline/stage.ts';
import { ProviderError } from '../../../../workers/providers/provider.ts';
import type { ProviderAdapter } from '../../../../workers/providers/provider.ts';
import { createEventBus } from '../../../../shared/lifecycle/event-bus.ts';
import { idleLease, idleRun } from '../../../support/idle-run.ts';
import { plainEnvelope } from '../../../support/plain-envelope.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

const seat = { recordText: () => undefined, recordLimits: () => undefined, leave: () => undefined };

/** A run whose targets are called by their models' names; a name of two letters is of a lower priority. */
function open(
  adapter: ProviderAdapter,
  models: readonly string[],
  enter: Capacities['enter'] = () => Promise.resolve(seat),
) {
  const shown: string[] = [];
  const limits = { maxRetries: 1, timeoutMs: 5_000, firstTokenTimeoutMs: 5_000 };
  const provider = { name: 'p', kind: 'openai' as const, baseUrl: '', ...limits };
  const generate = createGenerate({
    adapters: { openai: adapter, anthropic: adapter, simulated: adapter },
    breakers: { guard: (_provider, call) => call(() => undefined), isPassable: () => true },
    capacities: { enter, hasPlace: () => true, isServing: () => false, seeksCeiling: () => false },
    openWindow: ({}, { release }) => ({ push: release, end: () => Promise.resolve(), close: () => undefined }),
    openWriter: () => ({
      write: (text) => shown.push(wordsOf(text)),
      scheduleRead: () => undefined,
      settle: () => Promise.resolve(),
    }),
    events: createEventBus(() => undefined),
    silenceMs: 5_000,
    slowAnswerMs: 5_000,
    clock: { now: Date.now },
    log: createRecordingLog(),
  });
  const run: Routed = {
    ...idleRun(),
    ...{ entity: undefined, history: [], submitted: [], context: [] },
    prompt: { instruction: undefined, history: [], submitted: [{ role: 'user', content: 'Hello' }] },
    targets: models.map((model) => ({
      provider,
      target: { provider: 'p', model, weight: 1, priority: model.length, contextWindow: 100_000 },
    })),
  };
  return { generate, run, shown };
}

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
    const { generate, run, shown } = open(adapter, ['p']);
    Object.assign(run, { lease, envelope: plainEnvelope({ maxTokens: 4_096 }) });

    const { outcome } = await generate(run);

    expect(calls).toBe(2);
    expect(shown.join('')).toBe('right');
    expect(run.answer.text).toBe('right');
    expect(outcome.finishReason).toBe('stop');
  });

  it.each([true, false])(
    'counts no work of a call that was refused before any text, and only of that: %s',
    async (isRefusal) => {
      const fault = isRefusal ? 'silent' : 'transient';
      const generateNone = () => Promise.reject(new ProviderError(fault, 'The provider failed', { isRefusal }));
      const { generate, run } = open({ generate: generateNone }, ['p']);

      await expect(generate(run)).rejects.toThrow();
      expect(run.answer.asks.map(({ isRefused }) => isRefused)).toEqual([isRefusal, isRefusal]);
    },
  );

  it('asks a target again that was passed over as full, once those of its priority have failed, and waits there', async () => {
    const asked: string[] = [];
    const adapter: ProviderAdapter = {
      generate(_provider, { model }, sink) {
        asked.push(model);
        if (model === 'c') return Promise.reject(new ProviderError('refused', 'The provider failed'));
        sink({ kind: 'text', text: 'Hi' });
        sink({ kind: 'end', finishReason: 'stop', usage: undefined });
        return Promise.resolve();
      },
    };
    const entered: string[] = [];
    const { generate, run } = open(adapter, ['a', 'b', 'c', 'lo'], ({ target: { model } }, { hasRoomBeside }) => {
      entered.push(model);
      return model !== 'c' && hasRoomBeside()
        ? Promise.reject(new ProviderError('full', 'full'))
        : Promise.resolve(seat);
    });

    expect((await generate(run)).outcome.finishReason).toBe('stop');
    expect(entered).toEqual(['a', 'b', 'c', 'a', 'b']);
    expect(asked).toEqual(['c', 'b']);
  });
});
