import { describe, expect, it } from '@jest/globals';

import { createAdapters } from '../../../workers/open-pipeline.ts';
import type { ProviderCall, ProviderEvent } from '../../../workers/providers/provider.ts';
import { callOf, providerOf, readEvents } from '../../support/provider-call.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';

const MEGABYTE = 1024 * 1024;
const named = (event: { type: string; [field: string]: unknown }) =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const START = named({
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', usage: { input_tokens: 3, output_tokens: 1 } },
});
const OPEN = named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } });
const textEvent = (text: string) =>
  named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
const CLOSE = named({ type: 'content_block_stop', index: 0 });
const PING = named({ type: 'ping' });
const finish = (reason: string, usage: object = { output_tokens: 2 }) =>
  named({ type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage });
const STOP = named({ type: 'message_stop' });
const OVERLOADED = named({ type: 'error', error: { type: 'overloaded_error', message: 'canary' } });
const COMPLETE = JSON.stringify({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 2 },
});
const USAGE = { promptTokens: 3, completionTokens: 2 };
const HI: ProviderEvent[] = [
  { kind: 'text', text: 'Hi' },
  { kind: 'end', finishReason: 'stop', usage: USAGE },
];

describe('the Messages API', () => {
  const { server, http } = useScriptedServer();

  const answers = (body: string, status = 200, headers: Record<string, string> = {}) => {
    server.answer((res) => res.writeHead(status, headers).end(body));
  };
  const ask = (more: Partial<ProviderCall> = {}, path = '/v1') =>
    readEvents((sink) =>
      createAdapters(http).anthropic.generate(providerOf('anthropic', server.url + path), callOf(more), sink),
    );

  it('is called with its own headers at its own path', async () => {
    answers(COMPLETE);

    await ask({ stream: false }, '/v1/');

    expect(server.requests[0]).toMatchObject({
      url: '/v1/messages',
      headers: { 'x-api-key': 'sk-secret', 'anthropic-version': '2023-06-01', 'x-request-id': 'req_1' },
    });
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization');
    expect(JSON.parse(server.requests[0]?.body ?? '')).toMatchObject({ model: 'm', max_tokens: 10 });
  });

  it.each([
    ['as documented', START + OPEN + PING + textEvent('H') + textEvent('i') + CLOSE + finish('end_turn') + STOP],
    ['without event names', (START + textEvent('Hi') + finish('stop_sequence') + STOP).replaceAll(/event: .*\n/g, '')],
    ['that ends with its stop reason, without message_stop', START + textEvent('Hi') + finish('end_turn')],
    [
      'with zeros in its last event for what its first one has counted',
      START + textEvent('Hi') + finish('end_turn', { input_tokens: 0, output_tokens: 2 }) + STOP,
    ],
    [
      'with its totals in its last event alone',
      START.replace('"input_tokens":3', '"input_tokens":0') +
        textEvent('Hi') +
        finish('end_turn', { input_tokens: 3, output_tokens: 2 }) +
        STOP,
    ],
    [
      'with totals in its last event',
      START + textEvent('Hi') + finish('end_turn', { input_tokens: 3, output_tokens: 2 }) + STOP,
    ],
  ])('the Messages API gives a stream %s', async (_how, body) => {
    answers(body);

    const { events, failure } = await ask();

    expect(failure).toBeUndefined();
    expect(events.flatMap((event) => (event.kind === 'text' ? event.text : [])).join('')).toBe('Hi');
    expect(events.at(-1)).toEqual(HI[1]);
  });

  it('stops at a line’s end where that is asked for, though the API would not', async () => {
    answers(START + textEvent('One') + textEvent('.\nTwo') + finish('end_turn') + STOP);

    expect(await ask({ passed: { stop: '\n' } })).toEqual({
      events: [
        { kind: 'text', text: 'One' },
        { kind: 'text', text: '.' },
        { kind: 'end', finishReason: 'stop', usage: undefined },
      ],
    });
  });

  it.each([
    ['with an overload after some text', START + textEvent('Hi') + OVERLOADED],
    ['that waits for a tool', START + finish('tool_use') + STOP],
    ['that pauses', START + textEvent('Hi') + finish('pause_turn') + STOP],
    ['of 33 MB', `: ${'x'.repeat(33 * MEGABYTE)}\n\n`],
  ])('the Messages API fails with a stream %s', async (_what, body) => {
    answers(body);

    const { events, failure } = await ask();

    expect(failure).toMatchObject({ name: 'ProviderError', fault: 'transient' });
    expect(events.filter(({ kind }) => kind === 'end')).toEqual([]);
    expect(String((failure as Error).stack)).not.toContain('canary');
  });

  it('the Messages API ends at once when the call is aborted', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<undefined>();
    server.answer((res) => {
      res.writeHead(200).write(START);
      resolve(undefined);
    });
    const controller = new AbortController();
    const reason = new Error('stopped');
    const result = ask({ signal: controller.signal });
    await asked;

    controller.abort(reason);

    expect((await result).failure).toBe(reason);
  });
});
