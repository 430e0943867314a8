import { afterEach, describe, expect, it } from '@jest/globals';

import {
  chatOf,
  choiceOf,
  errorOf,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  requestIdOf,
  textOf,
  waitFor,
} from '../../support/chat.ts';
import { postLines } from '../../support/batch-client.ts';
import { openStream } from '../../support/stream-client.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useTwoProtocols } from '../../support/two-protocols.ts';
import { useService } from '../../support/use-service.ts';

const SAID = { prompt: 5, completion: 5 };
const PROTOCOLS = [
  ['OpenAI’s', 'mobius'],
  ['Anthropic’s', 'oloid'],
] as const;

const service = useService({ workers: 0, silenceMs: 300 });
const { say } = useTwoProtocols(service);
afterEach(() => service.resetBreakers());

/** The sequences by which JSON writes half a surrogate pair. */
const HALF = /\\ud[89a-f]/i;

describe.each(PROTOCOLS)('text held back for moderation (%s protocol)', (_protocol, model) => {
  /** The last word may go on as one that is looked for. */
  const TEXTS = ['hello ', 'odd ', 'world'];

  it.each([
    ['its body ends too early', 'cut', 'model_unavailable'],
    ['its provider falls silent', 'silent', 'timeout'],
  ] as const)('is sent, and counted, if %s', async (_how, stops, code) => {
    say({ ...SAID, texts: TEXTS, stops });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Hi', { model }));

    const events = parseSse(String(response.body));
    expect(textOf(events)).toBe('hello odd world');
    const { chunk } = events.at(-1) ?? {};
    expect(chunk).toMatchObject({ error: { code }, usage: { completion_tokens: 3 } });
    expect(await ledgerOf(service, response)).toMatchObject({ completionTokens: 3, estimated: true });
  });

  it('is not shown if it is flagged, although the stream fails', async () => {
    say({ ...SAID, texts: ['Fine. ', 'parley moderation test'], stops: 'cut' });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Hi', { model }));

    const events = parseSse(String(response.body));
    expect(textOf(events)).toBe('Fine. ');
    expect(choiceOf(events.at(-2)?.chunk).finish_reason).toBe('content_filter');
  });

  it('is neither sent nor counted if the request is cancelled', async () => {
    say({ ...SAID, texts: ['one two three four five ', 'six'], stops: 'silent' });
    const { key } = await service.startTenant();
    const stream = await openStream(service.url, key, chatOf('Hi', { model }));
    await stream.until('five');

    await apiOf(service, key)('post', `/chat/${stream.requestId}/cancel`);

    const events = parseSse(await stream.end());
    expect(textOf(events)).toBe('one two three four five ');
    expect(events.at(-2)?.chunk).toMatchObject({
      choices: [{ finish_reason: 'cancelled' }],
      usage: { completion_tokens: 6 },
    });
  });
});

describe.each(PROTOCOLS)('half a surrogate pair in an answer (%s protocol)', (_protocol, model) => {
  const TEXTS = ['a\ud83d', '\ude00 b\ud83d', ' c \ude00', ' d\ud83d'];
  const WHOLE = 'a😀 b\ufffd c \ufffd d\ufffd';

  it('is replaced in a complete answer, wherever that is read again', async () => {
    say({ ...SAID, texts: TEXTS });
    const { key } = await service.startTenant();
    const body = chatOf('Hi', { model, entity_id: 'pupil' });
    const ask = () => postChat(service.app, key, body).set('Idempotency-Key', `half ${model}`);

    const first = await ask();
    const again = await ask();
    const looked = await apiOf(service, key)('get', `/chat/${requestIdOf(first)}`);

    for (const { text } of [first, again, looked]) expect(text).not.toMatch(HALF);
    expect(first.body.choices[0].message.content).toBe(WHOLE);
    expect(again.body).toEqual(first.body);
    expect(looked.body.response).toEqual(first.body);
    const history = await apiOf(service, key)('get', '/entities/pupil/history?order=desc&limit=1');
    expect(history.body.data[0].content).toBe(WHOLE);
  });

  it.each([undefined, 'cut'] as const)('is replaced in a stream, and whole pairs stay joined (%s)', async (stops) => {
    say({ ...SAID, texts: TEXTS, ...(stops === undefined ? {} : { stops }) });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Hi', { model }));

    expect(String(response.body)).not.toMatch(HALF);
    expect(textOf(parseSse(String(response.body)))).toBe(WHOLE);
  });
});

describe('half a surrogate pair in a request', () => {
  it('is replaced in metadata, names and values, on every route', async () => {
    say({ ...SAID, texts: ['Hi'] });
    const { key } = await service.startTenant();
    const api = apiOf(service, key);
    const metadata = { 'a\ud83d': ['\ude00', '\\ud83d', '😀'] };
    const whole = { 'a\ufffd': ['\ufffd', '\\ud83d', '😀'] };

    const complete = await postChat(service.app, key, chatOf('Hi', { metadata }));
    const streamed = await postStream(service.app, key, chatOf('Hi', { metadata }));
    const completion = await api('post', '/chat/completions', { ...chatOf('Hi', { metadata }), model: 'mobius' });
    const entity = await api('put', '/entities/half', { metadata });
    const batch = await api('post', '/batches', { requests: [{ custom_id: '1', body: chatOf('Hi') }], metadata });

    for (const { body } of [complete, completion, entity, batch]) expect(body.metadata).toEqual(whole);
    expect(parseSse(String(streamed.body)).at(-2)?.chunk).toMatchObject({ metadata: whole });
  });

  it('is replaced in the sentence that names a field', async () => {
    const { key } = await service.startTenant();

    const response = await apiOf(service, key)('put', '/entities/half', { 'a\ud83d': 1 });

    expect(errorOf(response)).toMatchObject({ param: 'a\ufffd', message: expect.stringContaining('a\ufffd') });
  });
});

describe.each(PROTOCOLS)('a code fence around an answer in json_mode (%s protocol)', (_protocol, model) => {
  it.each(['```json\n{"a": 1}\n```', '```\n{"a": 1}\n```', ' \n```JSON\r\n{"a": 1}```\n'])(
    'is taken off a complete answer, and no second one is asked for: %j',
    async (text) => {
      say({ ...SAID, texts: [text] });
      const { key } = await service.startTenant();
      const body = chatOf('As JSON', { model, json_mode: true, entity_id: 'pupil' });

      const response = await postChat(service.app, key, body).set('Idempotency-Key', 'fence');
      const again = await postChat(service.app, key, body).set('Idempotency-Key', 'fence');

      expect(response.body.choices[0].message.content).toBe('{"a": 1}');
      expect(again.body).toEqual(response.body);
      expect(await ledgerOf(service, response)).toMatchObject({ promptTokens: 5, completionTokens: 5 });
      const history = await apiOf(service, key)('get', '/entities/pupil/history?order=desc&limit=1');
      expect(history.body.data[0].content).toBe('{"a": 1}');
    },
  );

  it.each(['Here: ```json\n{"a": 1}\n```', '```json\n{"a": 1}\n``` So.', '```json\n[1]\n```', '```python\n{}\n```'])(
    'is no JSON if it encloses less, or something else: %j',
    async (text) => {
      say({ ...SAID, texts: [text] });
      const { key } = await service.startTenant();

      const response = await postChat(service.app, key, chatOf('As JSON', { model, json_mode: true }));

      expect(response.status).toBe(503);
    },
  );

  it('stays without json_mode, and in a stream, which then ends with the typed error', async () => {
    const text = '```json\n{"a": 1}\n```';
    say({ ...SAID, texts: [text] });
    const { key } = await service.startTenant();

    const plain = await postChat(service.app, key, chatOf('As you like', { model }));
    const streamed = await postStream(service.app, key, chatOf('As JSON', { model, json_mode: true }));

    expect(plain.body.choices[0].message.content).toBe(text);
    const events = parseSse(String(streamed.body));
    expect(textOf(events)).toBe(text);
    expect(events.at(-1)?.chunk).toMatchObject({ error: { code: 'model_unavailable' } });
  });

  it('is taken off in the line of a batch', async () => {
    say({ ...SAID, texts: ['```json\n{"a": 1}\n```'] });
    const { key } = await service.startTenant();
    const line = { custom_id: 'a', body: chatOf('As JSON', { model, json_mode: true }) };

    const { body } = await postLines(service, key, [line]);

    const text = await waitFor(async () => {
      const results = await apiOf(service, key)('get', `/batches/${String(body.id)}/results`);
      return results.text === '' ? undefined : results.text;
    }, 'the result of the line');
    expect(JSON.parse(text).response.choices[0].message.content).toBe('{"a": 1}');
  });
});
