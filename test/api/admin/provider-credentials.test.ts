import { inspect } from 'node:util';

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { describeError } from '../../../shared/logging/logger.ts';
import { chatOf, errorOf, postChat, postStream, requestIdOf } from '../../support/chat.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';
import { startService } from '../../support/service.ts';
import type { TestService } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';

const CANARY = 'sk-canary-0123456789abcdef';

function says(status: number, text: string) {
  return (server: ScriptedServer) => {
    server.answer((res) => res.writeHead(status).end(text));
  };
}
const errorWith = (text: string) => JSON.stringify({ error: { message: text, code: text, type: text } });

/** Ways to fail, each of which says the key back where the server can say something. */
const FAILURES: [string, (server: ScriptedServer) => void][] = [
  ['refuses the key and quotes it', says(401, errorWith(`Incorrect API key provided: ${CANARY}`))],
  ['is overloaded', says(503, errorWith(`the limit of ${CANARY}`))],
  ['calls the request wrong', says(400, errorWith(CANARY))],
  ['answers no JSON', says(200, `<html>${CANARY}</html>`)],
  ['fails inside its answer', says(200, `data: ${errorWith(`for ${CANARY}`)}\n\n`)],
  [
    'closes the connection',
    (server) => {
      server.answer((res) => res.socket?.resetAndDestroy());
    },
  ],
];

/** Every line as the logger writes it. */
function logOf({ log }: TestService): string {
  return log.lines
    .map(({ message, fields: { error, ...fields } }) => `${message} ${inspect(fields)} ${describeError(error, true)}`)
    .join('\n');
}

/** What Redis holds of the tenants of the first shard. */
async function redisText({ redis, keyspace }: TestService): Promise<string> {
  const names = await redis.keys(`${keyspace.shard(0).tag}*`);
  const parts = await Promise.all(
    names.map(async (name): Promise<unknown> => {
      const type = await redis.type(name);
      if (type === 'string') return redis.get(name);
      if (type === 'hash') return redis.hgetall(name);
      return type === 'stream' ? redis.xrange(name, '-', '+') : undefined;
    }),
  );
  return inspect([names, parts], { depth: 9, maxArrayLength: null, maxStringLength: null });
}

describe('the key of a provider', () => {
  let server: ScriptedServer;
  const puts: string[] = [];
  const service = useService({ workers: 0, env: { LOG_LEVEL: 'debug' } });
  beforeAll(async () => {
    server = await startScriptedServer();
    for (const [tier, kind] of [
      ['mobius', 'openai'],
      ['oloid', 'anthropic'],
    ] as const) {
      const settings = { kind, base_url: `${server.url}/v1`, api_key: CANARY, max_retries: 0 };
      puts.push((await service.admin('put', `/providers/${kind}`, settings)).text);
      await service.setTargets(tier, [{ provider: kind, model: 'm' }]);
    }
    await service.startWorker();
  });
  afterEach(async () => {
    await service.resetBreakers();
  });
  afterAll(async () => {
    await server.close();
  });

  it('the key of a provider is in no answer of the administration', async () => {
    const paths = ['/providers', '/providers/openai', '/tiers/mobius', '/tiers/mobius/versions', '/queues', '/tenants'];
    const gets = await Promise.all(paths.map(async (path) => (await service.admin('get', path)).text));

    expect([...puts, ...gets].join('\n')).toContain('"has_api_key":true');
    expect([...puts, ...gets].filter((text) => text.includes(CANARY))).toEqual([]);
  });

  it.each([
    [{ api_key: `${CANARY}\n` }],
    [{ api_key: CANARY, typo: CANARY }],
    [{ base_url: `http://u:${CANARY}@host/v1` }],
    [{ base_url: `http://host/v1?key=${CANARY}` }],
  ])('the key of a provider is not in a refusal either', async (fields) => {
    const wrong = { kind: 'openai', base_url: 'http://host/v1', ...fields };

    const refused = await service.admin('put', '/providers/openai', wrong);

    expect(refused.status).toBe(400);
    expect(refused.text).not.toContain(CANARY);
  });

  it('is encrypted in the database, each time anew', async () => {
    const rows = await service.models.providers.find({ encryptedApiKey: { $exists: true } }).lean();
    const secrets = rows.map((row) => String(row.encryptedApiKey));

    expect(new Set(secrets).size).toBe(2);
    expect(inspect(rows, { depth: 9 })).not.toContain(CANARY);
    for (const secret of secrets) expect(Buffer.from(secret, 'base64').includes(CANARY)).toBe(false);
  });

  it.each(FAILURES)('is in no log, answer, trace, metric or store when the provider %s', async (_what, fail) => {
    fail(server);
    const { key } = await service.startTenant();
    const asked = server.requests.length;
    const texts: string[] = [];

    for (const model of ['mobius', 'oloid']) {
      for (const post of [postChat, postStream]) {
        const response = await post(service.app, key, chatOf('Hello', { model }));
        expect(errorOf(response)).toMatchObject({ code: expect.any(String) });
        const look = request(service.app).get(`/platform/v1/chat/${requestIdOf(response)}`);
        const { text } = await look.auth(key, { type: 'bearer' });
        texts.push(JSON.stringify(response.body), text);
      }
    }

    const headers = server.requests.slice(asked).map((call) => call.headers);
    expect(headers).toContainEqual(expect.objectContaining({ authorization: `Bearer ${CANARY}` }));
    expect(headers).toContainEqual(expect.objectContaining({ 'x-api-key': CANARY }));
    expect(logOf(service)).toContain('A provider failed.');
    texts.push(logOf(service), await service.metrics(), await redisText(service));
    expect(texts.filter((text) => text.includes(CANARY))).toEqual([]);
  });
});

describe('the key of the moderation endpoint', () => {
  it('is in no log and no answer when the endpoint quotes it', async () => {
    const server = await startScriptedServer();
    const endpoint = { MODERATION_BASE_URL: `${server.url}/v1`, MODERATION_API_KEY: CANARY };
    const service = await startService({ env: { LOG_LEVEL: 'debug', MODERATION_BACKEND: 'openai', ...endpoint } });
    says(401, errorWith(`Incorrect API key provided: ${CANARY}`))(server);
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('Hello'));

    expect(response.status).toBe(503);
    expect(server.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${CANARY}` });
    expect(logOf(service)).toContain('401');
    expect(`${response.text} ${logOf(service)}`).not.toContain(CANARY);
    await service.close();
    await server.close();
  });
});
