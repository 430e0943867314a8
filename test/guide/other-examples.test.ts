import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { freePort } from '../../scripts/embedded/ports.ts';
import { startService } from '../support/service.ts';
import type { TestService, TestTenant } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';
import { EXAMPLES, runExample, startExample } from './run-example.ts';

const EXAMPLE_FOLDERS = ['javascript', 'python'] as const;

let service: TestService;
let tenant: TestTenant;
let env: Record<string, string>;
let cwd: string;

beforeAll(async () => {
  service = await startService({ env: { PAYMENTS: 'test', WEBHOOK_ALLOW_PRIVATE: 'true' } });
  tenant = await service.startTenant();
  env = { BASE_URL: `${service.url}/platform/v1`, API_KEY: tenant.key, POLL_MS: '100' };
  cwd = await mkdtemp(join(tmpdir(), 'parley-guide-'));
});
afterAll(async () => {
  await service.close();
  await rm(cwd, { recursive: true, force: true });
});

async function call(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${env['BASE_URL'] ?? ''}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${tenant.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}

const ask = (entityId: string) =>
  call('/chat', { entity_id: entityId, messages: [{ role: 'user', content: 'My name is Ada.' }], max_tokens: 8 });

describe('an example that needs arguments', () => {
  const names = EXAMPLE_FOLDERS.flatMap((folder) =>
    readdirSync(join(EXAMPLES, folder)).map((file) => `${folder}/${file}` as const),
  ).filter((name) => /process\.argv|sys\.argv/.test(readFileSync(join(EXAMPLES, name), 'utf8')));

  it('is each of those that the guide shows with some', () => {
    expect(names).toHaveLength(6);
  });

  it.each(names)('says so without them: %s', async (name) => {
    const program = name.startsWith('javascript') ? 'node' : 'python3';
    const failed: unknown = await runExample(name, env).catch((error: unknown) => error);

    const file = name.slice(name.indexOf('/') + 1);
    const usage = new RegExp(`^${name} ended with 2: Usage: ${program} ${file} [^\\n]+\\n$`);
    expect((failed as Error).message).toMatch(usage);
  });
});

describe('the batch clients of the guide', () => {
  const lines = ['greeting', 'sum']
    .map((name) => JSON.stringify({ custom_id: name, body: { messages: [{ role: 'user', content: name }] } }))
    .join('\n');

  it.each(['javascript/batch.mjs', 'python/batch.py'] as const)(
    'the batch clients of the guide %s prints every result',
    async (name) => {
      await writeFile(join(cwd, 'requests.ndjson'), `${lines}\n`);
      const printed = await runExample(name, env, { args: ['requests.ndjson', name], cwd });
      expect(printed).toMatch(/^completed /m);
      expect(printed).toMatch(/^greeting \S/m);
      expect(printed).toMatch(/^sum \S/m);
    },
  );

  it('the batch clients of the guide batch.sh prints every result', async () => {
    const printed = await runExample('curl/batch.sh', env);
    expect(printed.trim().split('\n')).toHaveLength(2);
  });
});

describe('the compliance clients of the guide', () => {
  it.each(['javascript/export.mjs', 'python/export.py'] as const)(
    'the compliance clients of the guide %s gets the messages of an entity',
    async (name) => {
      await ask('pupil-of-an-export');
      expect(await runExample(name, env, { args: ['pupil-of-an-export'], cwd })).toContain('messages');
    },
  );

  it('delete.mjs deletes an entity and prints the report', async () => {
    await ask('pupil-of-a-deletion');
    const printed = await runExample('javascript/delete.mjs', env, { args: ['pupil-of-a-deletion'] });
    expect(printed).toMatch(/^completed erased_/);
  });
});

describe('the billing clients of the guide', () => {
  it('checkout.mjs prints the address of a payment page', async () => {
    const prices = { currency: 'usd', price_per_million_credits: 500, packages: [] };
    expect((await service.admin('put', '/packages', prices)).status).toBe(200);
    expect(await runExample('javascript/checkout.mjs', env, { args: ['1000000'] })).toMatch(/^https?:\/\//);
  });

  it('transactions.py prints the grant of the first credits', async () => {
    expect(await runExample('python/transactions.py', env)).toMatch(/ grant 1000000 1000000$/m);
  });

  it('usage.mjs prints the tokens of an entity', async () => {
    await ask('pupil-of-the-usage');
    const printed = await waitFor(async () => {
      const text = await runExample('javascript/usage.mjs', env);
      return text.includes('pupil-of-the-usage') ? text : undefined;
    }, 'the usage to be booked');
    expect(printed).toMatch(/^pupil-of-the-usage \d+ \d/m);
  });
});

describe('the webhook receivers of the guide', () => {
  it.each(['javascript/receiver.mjs', 'python/receiver.py'] as const)(
    '%s believes a signed event and nothing else',
    async (name) => {
      const port = await freePort();
      const webhook = await call('/webhooks', { url: `http://127.0.0.1:${port}/`, events: ['chat.completed'] });
      const receiver = startExample(name, { WEBHOOK_SECRET: String(webhook['secret']), PORT: String(port) });
      const forged = () =>
        fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{"id":"evt_1","type":"ping"}' }).then(
          ({ status }) => status,
          () => undefined,
        );

      expect(await waitFor(forged, 'the receiver to listen')).toBe(400);
      await call(`/webhooks/${String(webhook['id'])}/test`, {});
      const printed = await waitFor(
        () => (/evt_\w+ ping/.test(receiver.printed()) ? receiver.printed() : undefined),
        'a ping',
      );

      expect(printed).not.toContain('evt_1 ');
      receiver.stop();
      await receiver.end;
    },
  );
});
