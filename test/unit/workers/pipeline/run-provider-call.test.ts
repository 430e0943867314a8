import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { toDelta } from '../../../../shared/contracts/events.ts';
import { classifyFailure, runProviderCall } from '../../../../workers/pipeline/run-provider-call.ts';
import { ProviderError } from '../../../../workers/providers/provider.ts';
import type { ProviderAdapter, ProviderCall, ProviderEvent } from '../../../../workers/providers/provider.ts';
import { plainEnvelope } from '../../../support/plain-envelope.ts';
import { readyCall } from '../../../support/ready-call.ts';
import { listenersOf } from '../../../support/signals.ts';

const END: ProviderEvent = { kind: 'end', finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 2 } };

/** An adapter that says what it is told and then, if told so, is silent until its call is aborted. */
function adapterOf(events: readonly ProviderEvent[], options: { thenSilent?: boolean } = {}) {
  const calls: ProviderCall[] = [];
  const state = { closed: 0 };
  const adapter: ProviderAdapter = {
    async generate(_provider, call, sink) {
      calls.push(call);
      try {
        await Promise.resolve();
        for (const event of events) sink(event);
        if (options.thenSilent !== true) return;
        await new Promise((_resolve, reject) => {
          call.signal.addEventListener('abort', () => {
            // The reason a call is stopped with is always an error.
            reject(call.signal.reason as Error);
          });
        });
      } finally {
        state.closed += 1;
      }
    },
  };
  return { adapter, calls, state };
}

describe('one call of a provider', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    ['a limit on the provider’s silence', 500],
    ['its time for the whole answer, which has come', 1_500],
  ])('waits for the last verdict without %s', async (_limit, waitMs) => {
    const released = Promise.withResolvers<undefined>();
    const { input, texts } = readyCall({
      openWindow: ({ release, signal }) => ({
        push: () => undefined,
        end: async () => {
          await released.promise;
          signal.throwIfAborted();
          release('Hello');
        },
        close: () => undefined,
      }),
    });
    const { adapter } = adapterOf([{ kind: 'text', text: 'Hello' }, END]);

    const call = runProviderCall(adapter, input);
    await jest.advanceTimersByTimeAsync(waitMs);
    released.resolve(undefined);

    expect(await call).toMatchObject({ finishReason: 'stop' });
    expect(texts).toEqual(['Hello']);
  });

  it('stops the call where the verdict comes while the provider is thinking', async () => {
    const { input } = readyCall({
      openWindow: ({ stop }) => ({
        push: () => {
          setTimeout(() => {
            stop(new Error('no verdict'));
          }, 10);
        },
        end: () => Promise.resolve(),
        close: () => undefined,
      }),
    });
    const { adapter, state } = adapterOf([{ kind: 'text', text: 'Hello' }], { thenSilent: true });

    const call = expect(runProviderCall(adapter, input)).rejects.toThrow('no verdict');
    await jest.advanceTimersByTimeAsync(10);

    await call;
    expect(state.closed).toBe(1);
  });

  it.each([
    ['succeeds', adapterOf([{ kind: 'text', text: 'a' }, END]).adapter],
    ['fails', adapterOf([]).adapter],
    [
      'cannot begin',
      {
        generate() {
          throw new ProviderError('refused', 'no adapter');
        },
      },
    ],
  ])('leaves neither timers nor listeners behind when it %s', async (_how, adapter) => {
    const { input } = readyCall();

    await runProviderCall(adapter, input).catch(() => undefined);
    await jest.advanceTimersByTimeAsync(0);

    expect(jest.getTimerCount()).toBe(0);
    expect(listenersOf(input.outer)).toBe(0);
  });
});

describe('an answer that is too large', () => {
  const content = ['x'.repeat(4_000_000)];
  const { adapter } = adapterOf([{ kind: 'delta', ...toDelta({ content: 'a' }, { logprobs: { content } }) }, END]);

  it.each([
    [{ logprobs: true, top_logprobs: 20 }, { code: 'invalid_request', param: 'top_logprobs' }, 'void'],
    [{}, { fault: 'transient' }, 'failed'],
  ])('is its caller’s fault for the probabilities of tokens, else the provider’s: %j', async (passed, error, kind) => {
    const { input } = readyCall({ envelope: plainEnvelope({ passed }) });

    const failure = await runProviderCall(adapter, input).catch((thrown: unknown) => thrown);

    expect(failure).toMatchObject(error);
    expect(classifyFailure(failure)).toMatchObject({ kind });
  });
});

describe('an answer with calls of tools', () => {
  const FLAGGED = 'parley moderation test';
  const argue = (json: string, index = 0): ProviderEvent => ({
    kind: 'delta',
    ...toDelta({ tool_calls: [{ index, function: { arguments: json } }] }),
  });
  async function run(...events: ProviderEvent[]) {
    const shown: string[] = [];
    const { input } = readyCall({
      onIncrement: (increment) => shown.push(typeof increment === 'string' ? increment : increment.line),
    });
    const { finishReason } = await runProviderCall(adapterOf([...events, END]).adapter, input);
    return { shown, finishReason };
  }
  const text = (said: string): ProviderEvent => ({ kind: 'text', text: said });
  const lineOf = (event: ProviderEvent) => (event.kind === 'delta' ? event.line : '');

  it('passes moderation in order, each delta whole', async () => {
    const parts = [argue('{"a":'), argue('1}'), argue('{}', 1)];
    const { shown } = await run(text('Let me look'), ...parts, text('. Done.'));

    const at = shown.findIndex((increment) => increment.startsWith('['));
    expect(shown.slice(0, at).join('')).toBe('Let me look');
    expect(shown.slice(at, at + 3)).toEqual(parts.map(lineOf));
    expect(shown.slice(at + 3).join('')).toBe('. Done.');
  });

  it.each([
    ['in one delta', [argue(`{"q":"${FLAGGED}"}`)]],
    ['across deltas', [argue(`{"q":"${FLAGGED.slice(0, 4)}`), argue(`${FLAGGED.slice(4)}"}`)]],
    ['in JSON’s escapes', [argue('{"q":"\\u0070arley\\nmoderation te\\u00'), argue('73t"}')]],
  ])('is stopped where its arguments are flagged %s', async (_where, deltas) => {
    const { shown, finishReason } = await run(text('Let me look. '), ...deltas);

    expect(finishReason).toBe('content_filter');
    expect(shown.join('')).toBe('Let me look. ');
  });
});
