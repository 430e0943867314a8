import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { SimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';
import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';
import type { ProviderClient } from '../../support/provider-client.ts';
import { createProviderClient, MESSAGES, readAll } from '../../support/provider-client.ts';

const SCRIPT = 'scripts/simulated-provider/main.ts';

let provider: SimulatedProvider;
let client: ProviderClient;
let url: string;

beforeEach(async () => {
  provider = createSimulatedProvider({ defaults: { words: 7 } });
  ({ url } = await provider.listen());
  client = createProviderClient(url);
});

afterEach(() => provider.close());

describe('requests', () => {
  it.each([
    ['{"model":', 400, 'The request body is not valid JSON.'],
    ['', 400, 'The request body is not valid JSON.'],
    [[], 400, 'The request body must be a JSON object.'],
    [{ model: 'sim', messages: [] }, 400, 'messages must be a non-empty array.'],
    [{ model: 'sim?chunks=none', messages: MESSAGES }, 400, 'chunks must be a number.'],
    [{ model: 'sim?chunk=1', messages: MESSAGES }, 400, 'chunk is not a setting;'],
    ['x'.repeat(25 * 1024 * 1024 + 1), 413, 'The request body is over 26214400 bytes.'],
  ])('refuses %.40j with an error object and counts no call', async (body, status, message) => {
    const response = await client.post('/v1/chat/completions', body);

    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining(message), type: 'invalid_request_error', code: null },
    });
    expect(provider.stats()).toMatchObject({ calls: 0, rejected: 1, in_flight: 0 });
  });

  it.each([
    ['GET', '/v1/chat/completions'],
    ['POST', '/v1/responses'],
    ['GET', '/'],
  ])('answers %s %s with 404 and an error object', async (method, path) => {
    const response = await fetch(url + path, { method });

    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { message: `Unknown request URL: ${method} ${path}.` } });
  });
});

describe('settings', () => {
  it('can be changed, taken back and looked up while the server runs', async () => {
    const change = await client.post('/settings', { words: 9, first_token_ms: 1 });
    expect(await change.json()).toMatchObject({ words: 9, first_token_ms: 1, fail: 'none' });
    expect((await client.complete('sim')).usage?.completion_tokens).toBe(9);
    expect((await client.complete('sim?words=4')).usage?.completion_tokens).toBe(4);

    await client.post('/settings', { words: null });
    expect(await (await fetch(`${url}/settings`)).json()).toMatchObject({ words: 7, first_token_ms: 1 });
    await fetch(`${url}/settings`, { method: 'DELETE' });
    expect(provider.settings()).toMatchObject({ words: 7, first_token_ms: 0 });
  });

  it('are refused with a sentence that names the setting', async () => {
    const response = await client.post('/settings', { fail_rate: 'often' });

    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { message: 'fail_rate must be a number.' } });
  });
});

describe('the server', () => {
  it('runs as a process with its settings and stops on SIGTERM, open streams included', async () => {
    const child = spawn(process.execPath, [SCRIPT, '--defaults', 'words=3&fail=stall&fail_after=1'], {
      env: { ...process.env, NODE_OPTIONS: '', PROVIDER_PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(child.stdout, 'data');
    const [childUrl = ''] = /http:[^ ]*(?=\/v1)/.exec(String(line)) ?? [];
    const response = await createProviderClient(childUrl).chat('sim', { stream: true });
    child.kill('SIGTERM');

    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await readAll(response)).toMatchObject({ broke: true });
  });

  it.each([
    [1, () => ({ PROVIDER_PORT: new URL(url).port }), '', /^Port \d+ \(PROVIDER_PORT\) is in use: stop .*\.\n$/],
    [1, () => ({ PROVIDER_PORT: 'high' }), '', /^PROVIDER_PORT must be a whole number from 0 to 65535\.\n$/],
    [2, () => ({ PROVIDER_PORT: '0' }), 'chunks=0', /^chunks must be greater than or equal to 1\.\n\nnpm run /],
  ])('refuses to start with a sentence and exit code %d, case %#', async (code, env, defaults, sentence) => {
    const child = spawn(process.execPath, [SCRIPT, '--defaults', defaults], {
      env: { ...process.env, NODE_OPTIONS: '', HOST: '127.0.0.1', ...env() },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let errors = '';
    child.stderr.on('data', (part: Buffer) => {
      errors += part.toString();
    });

    expect(await once(child, 'close')).toEqual([code, null]);
    expect(errors).toMatch(sentence);
  });
});
