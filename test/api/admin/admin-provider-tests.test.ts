import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';

import { createParley } from '../../../scripts/parley.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { TEST_MS, createProviderTests } from '../../../shared/redis/stores/provider-tests.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';
import { uniqueName } from '../../support/stores.ts';
import { useAdmin, useService } from '../../support/use-service.ts';

const SECRET = 'sk-a-key-that-nobody-may-see';
const service = useService();
const scripted: { server?: ScriptedServer } = {};
const serverOf = () => scripted.server ?? Promise.reject(new Error('not started'));
beforeAll(async () => {
  scripted.server = await startScriptedServer();
  await service.setProvider({ kind: 'openai', base_url: `${scripted.server.url}/v1`, api_key: SECRET }, 'scripted');
});
afterAll(() => scripted.server?.close());

const test = (name: string, body?: object) => service.admin('post', `/providers/${name}/test`, body);

describe('a test of a provider', () => {
  it('is one short call by a worker, to the model of a tier, that says how it ended', async () => {
    service.provider.reset();
    const { status, body } = await test('simulated');
    expect([status, body]).toEqual([
      200,
      {
        id: 'simulated',
        object: 'provider.test',
        ok: true,
        status: 200,
        ms: expect.any(Number),
        model: 'sim',
        message: 'The provider answers.',
      },
    ]);
    expect(service.provider.stats()).toMatchObject({ calls: 1 });
    const { body: log } = await service.admin('get', '/audit_log?limit=1');
    expect(log.data[0]).toMatchObject({ path: '/admin/v1/providers/simulated/test', target: 'simulated', status: 200 });
  });

  it.each([
    [401, 'The provider answered 401 (invalid_api_key): it does not take the `api_key`.'],
    [404, 'The provider answered 404 (no code): look at `base_url` and at the name of the model.'],
    [500, 'The provider answered 500 (no code).'],
  ])('tells what to look at after %i, and neither the key nor what the provider wrote', async (refusal, message) => {
    const server = await serverOf();
    server.answer((res) => {
      res.writeHead(refusal, { 'Content-Type': 'application/json' });
      const code = refusal === 401 ? 'invalid_api_key' : null;
      res.end(JSON.stringify({ error: { code, message: `No such key: ${SECRET}` } }));
    });
    const { status, body, text } = await test('scripted', { model: 'gpt-5-mini' });
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ ok: false, status: refusal, model: null, message }),
    ]);
    expect(text).not.toContain(SECRET);
    expect(server.requests.at(-1)).toMatchObject({ headers: { authorization: `Bearer ${SECRET}` } });
    expect(JSON.stringify(service.log.lines)).not.toContain(SECRET);
  });

  it('tells that nothing listens, and leaves the breaker as it is', async () => {
    await service.setProvider({ base_url: 'http://127.0.0.1:1/v1' }, 'nobody');
    const { body } = await test('nobody', { model: 'sim' });
    expect(body).toMatchObject({
      ok: false,
      status: null,
      message: 'The connection to the provider failed (ECONNREFUSED).',
    });
    const { body: breakers } = await service.admin('get', '/breakers');
    for (const breaker of breakers.data) expect(breaker).toMatchObject({ state: 'closed', recent_failures: 0 });
  });

  it.each([
    ['scripted', {}, 400, /`model` is required, because no tier has a target of this provider/],
    ['scripted', { model: ' sim' }, 400, /`model` must not begin or end with a space/],
    ['scripted', { models: 'sim' }, 400, /`models` is not allowed/],
    ['missing', {}, 404, /There is no provider with this name/],
  ])('refuses %s with %j', async (name, body, status, message) => {
    const answer = await test(name, body);
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringMatching(message)]);
  });

  it('exits with 1 on the command line where the call fails', async () => {
    const address = service.adminApp.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? String(address?.port) : ''}`;
    const printed: string[] = [];
    const env = { ADMIN_TOKEN: 'an-administrator-token-of-tests-0123456789' };
    const program = createParley({ env, print: (line) => printed.push(line) });
    const before = process.exitCode;
    await program.parseAsync(['--url', url, 'providers', 'test', 'nobody', '--model', 'sim'], { from: 'user' });
    const { exitCode } = process;
    process.exitCode = before;
    expect([exitCode, printed.join()]).toEqual([1, expect.stringMatching(/^ok +false$/m)]);
  });
});

it('gives up soon after the longest test where the worker that has claimed it has died', async () => {
  const keyspace = createKeyspace(uniqueName('provider-tests'));
  const died = { id: 'died', provider: 'simulated', model: 'sim' };
  await service.redis.set(keyspace.providerTests.result(died.id), '', 'PX', 60_000);
  const [begin, passes] = [performance.now(), performance.now.bind(performance)];
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => 20 * (passes() - begin));
  try {
    expect(await createProviderTests(service.redis, keyspace).run(died)).toBeUndefined();
    expect(performance.now()).toBeGreaterThan(TEST_MS);
    expect(performance.now()).toBeLessThan(2 * TEST_MS);
  } finally {
    clock.mockRestore();
  }
});

describe('without a worker', () => {
  const admin = useAdmin();

  it('a test is answered 503', async () => {
    await admin.call('put', '/admin/v1/providers/one', { kind: 'openai', base_url: 'https://api.openai.com/v1' });
    const { status, body } = await admin.call('post', '/admin/v1/providers/one/test', { model: 'gpt-5-mini' });
    expect([status, body.error.message]).toEqual([503, expect.stringMatching(/^No worker has made the test/)]);
  });
});
