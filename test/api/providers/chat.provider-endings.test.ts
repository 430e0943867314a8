import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { Response } from 'supertest';

import { setTimeout as pause } from 'node:timers/promises';

import { itemOf, postLines, resultsOf } from '../../support/batch-client.ts';
import {
  chatOf,
  choiceOf,
  errorOf,
  expectUncharged,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  textOf,
} from '../../support/chat.ts';
import {
  COUNTED,
  OPENAI_USAGE,
  WHOLE_TEXT,
  coded,
  documentOf,
  oddDocument,
  oddStream,
  streamOf,
  writeOdd,
} from '../../support/odd-answers.ts';
import type { OddAnswer, Protocol } from '../../support/odd-answers.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { RunningWorker } from '../../support/service.ts';
import { useService, useStarted } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
/** As the provider counted. */
const CHARGED = { ...COUNTED, estimated: false };

/** An answer as a protocol gives it to a call, streamed or not. */
type Deform = (protocol: Protocol, stream: boolean) => OddAnswer;

const right: Deform = (protocol, stream) =>
  stream ? oddStream(streamOf(protocol)) : oddDocument(documentOf(protocol));
const ended =
  (word: string): Deform =>
  (protocol, stream) =>
    stream ? oddStream(streamOf(protocol, word)) : oddDocument(documentOf(protocol, word));
const withBody =
  (change: (wire: string) => string): Deform =>
  (protocol, stream) => {
    const answer = right(protocol, stream);
    return { ...answer, body: answer.body.map((part) => change(String(part))) };
  };

/** Whole answers, each deformed in one way. */
const WHOLE: [string, Deform][] = [
  ['in its last blank line', withBody((wire) => (wire.includes('[DONE]') ? wire.trimEnd() : wire))],
  [
    'by heartbeats that are events',
    withBody((wire) => (wire.startsWith('{') ? wire : `data: {"type":"ping"}\n\n${wire}`)),
  ],
  ['by a connection that is held', (...call) => ({ ...right(...call), end: 'held' })],
  ['by a connection that is cut', (...call) => ({ ...right(...call), end: 'cut' })],
  ['by a connection that is reset', (...call) => ({ ...right(...call), end: 'reset' })],
  ['by 100 Continue', (...call) => ({ ...right(...call), interim: [CONTINUE] })],
  ['by another label', (...call) => ({ ...right(...call), headers: { 'content-type': 'text/html' } })],
  ['by a coding', (...call) => coded(right(...call), 'gzip')],
  ['by a byte order mark', (...call) => ({ ...right(...call), body: ['\ufeff', ...right(...call).body] })],
  ['into a stream for a document, and the reverse', (protocol, stream) => right(protocol, !stream)],
];

/** `mobius` speaks OpenAI's protocol, `oloid` Anthropic's at four times the price. */
describe('an answer that its provider deforms', () => {
  const provider = useStarted('provider', startScriptedServer);
  const service = useService({ workers: 0 });
  let deform: Deform = right;
  let worker: RunningWorker;
  beforeAll(async () => {
    const settings = { base_url: `${provider.url}/v1`, api_key: 'k', max_retries: 0 };
    await service.setProvider({ kind: 'openai', ...settings }, 'completions');
    await service.setProvider({ kind: 'anthropic', ...settings }, 'messages');
    await service.setTargets('mobius', [{ provider: 'completions', model: 'm' }]);
    await service.setTargets('oloid', [{ provider: 'messages', model: 'm' }]);
    worker = await service.startWorker();
    provider.answer((res, req) => {
      const { stream = false } = JSON.parse(provider.requests.at(-1)?.body ?? '') as { stream?: boolean };
      void writeOdd(res, deform(req.url?.endsWith('/messages') === true ? 'anthropic' : 'openai', stream));
    });
  });
  beforeEach(() => {
    deform = right;
    provider.requests.length = 0;
  });
  afterAll(() => {
    expect(service.log.errors()).toEqual([]);
  });

  /** Text and finish reason, as a caller of either kind reads them. */
  function readOf(response: Response): { text: string; finishReason: string | null | undefined } {
    if (typeof response.body !== 'string') {
      const [choice] = response.body.choices as { message: { content: string }; finish_reason: string }[];
      return { text: choice?.message.content ?? '', finishReason: choice?.finish_reason };
    }
    const events = parseSse(response.body);
    const last = events.filter(({ chunk }) => chunk !== undefined).at(-1);
    return { text: textOf(events), finishReason: choiceOf(last?.chunk).finish_reason };
  }

  describe.each([
    ['a complete answer in OpenAI’s protocol', 'mobius', postChat],
    ['a stream in OpenAI’s protocol', 'mobius', postStream],
    ['a complete answer in Anthropic’s protocol', 'oloid', postChat],
    ['a stream in Anthropic’s protocol', 'oloid', postStream],
  ] as const)('as %s', (_what, model, post) => {
    it.each(WHOLE)('is whole, and charged as it was counted: %s', async (_how, how) => {
      deform = how;
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf('Say it', { model }));

      expect(readOf(response)).toEqual({ text: WHOLE_TEXT, finishReason: 'stop' });
      expect(await ledgerOf(service, response)).toMatchObject(CHARGED);
      expect(provider.requests).toHaveLength(1);
    });

    it('keeps json_mode’s promise where its connection is reset behind it', async () => {
      const asJson = withBody((wire) => wire.replace('hello ', String.raw`{\"a\": `).replace('odd world', '1}'));
      deform = (...call) => ({ ...asJson(...call), end: 'reset' });
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf('Say it', { model, json_mode: true }));

      expect(JSON.parse(readOf(response).text)).toEqual({ a: 1 });
      expect(provider.requests).toHaveLength(1);
    });

    it.each([
      ['MAX_TOKENS', 'length'],
      ['model_context_window_exceeded', 'length'],
      ['SAFETY', 'content_filter'],
      ['sensitive', 'content_filter'],
    ])('which stops for %s is told as %s, in json_mode, too', async (word, finishReason) => {
      deform = ended(word);
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf('Say it', { model, json_mode: true }));

      expect(readOf(response)).toEqual({ text: WHOLE_TEXT, finishReason });
      expect(await ledgerOf(service, response)).toMatchObject({ ...CHARGED, finishReason });
      expect(provider.requests).toHaveLength(1);
    });

    it('which stops for network_error is half an answer, and no success', async () => {
      deform = ended('network_error');
      const { key, tenantId } = await service.startTenant({ credits: 1_000 });

      const response = await post(service.app, key, chatOf('Say it', { model }));

      if (post === postChat) {
        expect(errorOf(response)).toMatchObject({ code: 'model_unavailable' });
        await expectUncharged(service, tenantId, 1_000);
      } else expect(parseSse(String(response.body)).at(-1)?.chunk).toHaveProperty('error.code', 'model_unavailable');
    });
  });

  it('into usage without choices opens no breaker, however often it comes', async () => {
    deform = () => {
      const wires = streamOf('openai').map(({ wire }) => wire);
      return { body: wires.toSpliced(4, 1, `data: ${JSON.stringify({ usage: OPENAI_USAGE })}\n\n`) };
    };
    const { key } = await service.startTenant();
    await service.resetBreakers();

    for (let call = 0; call < 12; call += 1) {
      const response = await postStream(service.app, key, chatOf('Say it'));
      expect(readOf(response)).toEqual({ text: WHOLE_TEXT, finishReason: 'stop' });
    }

    const { body } = await service.admin('get', '/breakers?limit=100');
    const breakers = body.data as { id: string; state: string; recent_failures: number }[];
    expect(breakers.find(({ id }) => id === 'completions')).toMatchObject({ state: 'closed', recent_failures: 0 });
  });

  it.each([
    ['complete', postChat],
    ['streamed', postStream],
  ] as const)(
    'into a refusal without content is content_filter, with the refusal as its text (%s)',
    async (_kind, post) => {
      const message = { content: null, refusal: 'I cannot help with that.' };
      deform = (_protocol, stream) => {
        const choice = { index: 0, [stream ? 'delta' : 'message']: message, finish_reason: 'stop' };
        const answer = { choices: [choice], usage: OPENAI_USAGE };
        return stream ? oddStream([{ wire: `data: ${JSON.stringify(answer)}\n\n` }]) : oddDocument(answer);
      };
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf('Say it'));

      expect(readOf(response)).toEqual({ text: 'I cannot help with that.', finishReason: 'content_filter' });
      expect(await ledgerOf(service, response)).toMatchObject(CHARGED);
    },
  );

  it('with a finish reason that nobody knows is an ordinary end, a line in the log and a metric', async () => {
    deform = ended('out_of_ideas');
    const { key } = await service.startTenant();
    const before = service.log.lines.length;

    expect(readOf(await postChat(service.app, key, chatOf('Say it')))).toMatchObject({ finishReason: 'stop' });

    const metrics = await worker.metrics();
    expect(metrics).toMatch(/^parley_provider_odd_ends_total\{provider="completions",model="m".*\} 1$/m);
    expect(service.log.lines.slice(before).filter(({ message }) => message.includes('not known'))).toMatchObject([
      { level: 'warn', fields: { provider: 'completions', model: 'm', finishReason: 'out_of_ideas' } },
    ]);
  });

  it('leaves nothing of a discarded one to a caller that cancels before the next call', async () => {
    deform = () =>
      provider.requests.length === 1 ? oddDocument(documentOf('openai')) : oddDocument({}, { end: 'held' });
    const { key, tenantId } = await service.startTenant();
    const answer = postChat(service.app, key, chatOf('As JSON', { json_mode: true })).then((response) => response);
    const inflight = () => service.redis.zrange(service.keyspace.shard(0).inflight, '0', '-1');
    const id = await waitFor(async () => (await inflight())[0], 'it');
    await waitFor(() => provider.requests[0], 'the first call');
    await pause(50);

    await request(service.app).post(`/platform/v1/chat/${id}/cancel`).auth(key, { type: 'bearer' });

    expect((await answer).status).toBe(409);
    await expectUncharged(service, tenantId, 1_000_000);
  });

  it('in a code fence, with the probabilities of its tokens, is JSON for who asked for it', async () => {
    const logprobs = { content: [{ token: '{', logprob: -0.1, bytes: null, top_logprobs: [] }] };
    const message = { role: 'assistant', content: '```json\n{"a": 1}\n```' };
    const choices = [{ index: 0, message, logprobs, finish_reason: 'stop' }];
    deform = () => oddDocument({ object: 'chat.completion', choices, usage: OPENAI_USAGE });
    const { key } = await service.startTenant();

    const { body } = await request(service.app)
      .post('/platform/v1/chat/completions')
      .auth(key, { type: 'bearer' })
      .send({ ...chatOf('As JSON'), model: 'mobius', logprobs: true, response_format: { type: 'json_object' } });

    expect(body.choices).toMatchObject([{ message: { content: '{"a": 1}' }, logprobs }]);
  });

  it('is the result of a line of a batch', async () => {
    deform = (...call) => ({ ...right(...call), interim: [CONTINUE], end: 'reset' });
    const { key } = await service.startTenant();

    const { body } = await postLines(service, key, [
      itemOf('one', { model: 'mobius' }),
      itemOf('two', { model: 'oloid' }),
    ]);
    await waitFor(async () => {
      const batch = await request(service.app)
        .get(`/platform/v1/batches/${String(body.id)}`)
        .auth(key, { type: 'bearer' });
      return batch.body.status === 'completed' ? true : undefined;
    }, 'the end of the batch');

    for (const { response } of await resultsOf(service, key, String(body.id)))
      expect(response).toMatchObject({ choices: [{ message: { content: WHOLE_TEXT }, finish_reason: 'stop' }] });
  });
});
