import type { ServerResponse } from 'node:http';

import { describe, expect, it } from '@jest/globals';

import { createOpenAiModerator } from '../../../workers/moderation/openai-moderator.ts';
import type { OpenAiModeratorOptions } from '../../../workers/moderation/openai-moderator.ts';
import { CODINGS, coded, writeOdd } from '../../support/odd-answers.ts';
import type { OddAnswer } from '../../support/odd-answers.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';
import { listenersOf } from '../../support/signals.ts';

/** The answer that OpenAI documents, with one category. */
const answerOf = (...scores: number[]) =>
  JSON.stringify({
    id: 'modr-1',
    model: 'omni-moderation-latest',
    results: scores.map((violence) => ({
      flagged: violence >= 0.5,
      categories: { violence: violence >= 0.5 },
      category_scores: { violence },
      category_applied_input_types: { violence: ['text'] },
    })),
  });

describe('a moderation endpoint', () => {
  const { server, http } = useScriptedServer();

  const open = (more: Partial<OpenAiModeratorOptions> = {}) =>
    createOpenAiModerator(http, { baseUrl: `${server.url}/v1/`, timeoutMs: 2_000, ...more });
  const answers = (body: string, status = 200) => {
    server.answer((res) => res.writeHead(status, { 'content-type': 'application/json' }).end(body));
  };

  it('is asked once about all texts, with its key and its model', async () => {
    answers(answerOf(0.1, 0.2));

    const verdict = await open({ apiKey: 'sk-mod', model: 'm' }).check(['one', 'two']);

    expect(verdict).toEqual({ flagged: false, categories: [], scores: { violence: 0.2 } });
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({ url: '/v1/moderations', headers: { authorization: 'Bearer sk-mod' } });
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual({ model: 'm', input: ['one', 'two'] });
  });

  it('is asked about a long conversation in several calls, up to the first that is flagged', async () => {
    server.answer((res) => {
      const { input } = JSON.parse(server.requests.at(-1)?.body ?? '') as { input: string[] };
      res.end(answerOf(...input.map((text) => (text.includes('bad') ? 0.9 : 0))));
    });
    const texts = Array.from({ length: 100 }, (_, index) => (index === 40 ? 'bad' : `text ${index}`));

    expect(await open().check(texts)).toMatchObject({ flagged: true, categories: ['violence'] });
    expect(server.requests).toHaveLength(2);
  });

  const right: OddAnswer = { headers: { 'content-type': 'application/json' }, body: [answerOf(0.9)] };
  it.each<[string, OddAnswer]>([
    ['behind 100 Continue', { ...right, interim: ['HTTP/1.1 100 Continue\r\n\r\n'] }],
    ['with a byte order mark', { ...right, body: ['\ufeff', ...right.body] }],
    ['labelled as a page', { ...right, headers: { 'content-type': 'text/html' } }],
    ['whose connection is held', { ...right, end: 'held' }],
    ['whose connection is cut', { ...right, end: 'cut' }],
    ['whose connection is reset', { ...right, end: 'reset' }],
    ...CODINGS.map((coding): [string, OddAnswer] => [`in ${coding}`, coded(right, coding)]),
  ])('a moderation endpoint is understood %s, and asked once', async (_how, answer) => {
    server.answer((res) => {
      void writeOdd(res, answer);
    });

    expect(await open().check('x')).toMatchObject({ flagged: true, categories: ['violence'] });
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]?.headers['accept-encoding']).toBe('identity');
  });

  it.each([
    ['a connection that was closed', (res: ServerResponse) => res.socket?.resetAndDestroy()],
    ['a moment of overload', (res: ServerResponse) => res.writeHead(503).end()],
  ])('a moderation endpoint is asked once more after %s', async (_what, fail) => {
    server.answer((res) => {
      if (server.requests.length === 1) fail(res);
      else res.end(answerOf(0));
    });

    expect(await open().check('x')).toMatchObject({ flagged: false });
  });

  it.each([
    ['is down', 503, '', 2],
    ['refuses its key', 401, '{"error":{"code":"invalid_api_key","message":"canary"}}', 1],
    ['answers something else', 200, '<html>canary</html>', 2],
    ['answers for fewer texts', 200, '{"results":[]}', 2],
  ])('a moderation endpoint gives no verdict when it %s', async (_what, status, body, calls) => {
    answers(body, status);

    const failure = await open({ apiKey: 'sk-mod' })
      .check('canary')
      .catch((error: unknown) => error);

    expect(failure).toMatchObject({ name: 'ProviderError' });
    expect(String((failure as Error).stack)).not.toMatch(/canary|sk-mod/);
    expect(server.requests).toHaveLength(calls);
  });

  it.each(['60', '9000000000'])('that asks for a wait of %s s is not waited for', async (wait) => {
    server.answer((res) => res.writeHead(429, { 'retry-after': wait }).end());
    const startedAt = performance.now();

    await expect(open().check('x')).rejects.toThrow('answered 429');

    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(server.requests).toHaveLength(1);
  });

  it('a moderation endpoint gives no verdict when it takes too long', async () => {
    server.answer(() => undefined);

    await expect(open({ timeoutMs: 100 }).check('x')).rejects.toThrow('no verdict within 100 ms');
  });

  it('is left at once by a caller who goes, and leaves nothing behind', async () => {
    const controller = new AbortController();
    const { promise: asked, resolve } = Promise.withResolvers<undefined>();
    server.answer(() => {
      resolve(undefined);
    });
    const check = open().check('x', { signal: controller.signal });
    await asked;
    const reason = new Error('gone');

    controller.abort(reason);

    await expect(check).rejects.toBe(reason);
    expect(listenersOf(controller.signal)).toBe(0);
  });
});
