import { expect, it } from '@jest/globals';

import { REPLAYED, skip } from '../../../api/admin/requests/replay-rules.ts';
import { createParley } from '../../../scripts/parley.ts';
import { BUILD } from '../../../shared/config/load-config.ts';
import { createProcessRegistry } from '../../../shared/redis/stores/process-registry.ts';
import { ADMIN_TOKEN } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';

const FAILED = ['a', 'b', 'c'].map((letter) => `req_${letter.repeat(24)}`);
const admin = useAdmin({
  /** Pages of one, of which the last is skipped. */
  replayFailed({ after, isDryRun }) {
    const at = after === undefined ? 0 : FAILED.indexOf(after.requestId) + 1;
    const requestId = FAILED[at] ?? '';
    const failed = undefined;
    const ended = at < 2 ? REPLAYED : skip('limit_reached', 9_000);
    const next = at < 2 ? { kind: 'async' as const, acceptedAt: at, failedAt: at, requestId } : undefined;
    const outcome = isDryRun ? ({ kind: 'matched' } as const) : ended;
    return Promise.resolve({ matched: FAILED.length - at, requests: [{ requestId, failed, outcome }], next });
  },
});

/** What `parley` prints. */
async function parley(...args: string[]): Promise<string> {
  const printed: string[] = [];
  const program = createParley({ env: { ADMIN_TOKEN }, print: (text) => printed.push(text) });
  await program.parseAsync(['--url', admin.url, ...args], { from: 'user' });
  return printed.join('\n');
}

it('a tenant is made, given a key and credits, suspended and found in the list', async () => {
  const { id } = JSON.parse(await parley('--json', 'tenants', 'create', 'Lakeside', '--credits', '500')) as {
    id: string;
  };
  await parley('tenants', 'grant', id, '250', '--key', 'first');
  await parley('tenants', 'grant', id, '250', '--key', 'first');
  expect(await parley('tenants', 'suspend', id)).toMatch(/^status +suspended$/m);
  expect(await parley('keys', 'create', id, '--name', 'app', '--scopes', 'chat')).toMatch(
    /^value +svc_sk_live_\w{32}$/m,
  );

  const [head, row] = (await parley('tenants')).split('\n');
  expect(head).toMatch(/^id +name +status +balance/);
  expect(row).toMatch(new RegExp(`^${id}  Lakeside  suspended +750 `));
  expect(await parley('keys', 'list', id)).toMatch(/ app +live +active +chat /);
});

it('figures are tables, and the same as the API has them with --json', async () => {
  expect(await parley('queues')).toMatch(/^id +waiting +active/);
  expect(await parley('usage')).toBe('None.');
  expect(await parley('providers')).toBe('None.');
  const { body } = await admin.call('get', '/admin/v1/margin');
  expect(JSON.parse(await parley('--json', 'usage', '--margin'))).toMatchObject({ object: body['object'] as string });
});

it('single fields of a key and a provider are changed, and names of models published and withdrawn', async () => {
  const { id } = JSON.parse(await parley('--json', 'tenants', 'create', 'Hillside')) as { id: string };
  const { id: key } = JSON.parse(await parley('--json', 'keys', 'create', id)) as { id: string };
  expect(await parley('keys', 'change', id, key, '{"name": "bot", "rpm": 7}')).toMatch(/^limits +.*"rpm":7\b/m);
  const target = { provider: 'sim', model: 'org/model' };
  await admin.call('put', '/admin/v1/providers/sim', { kind: 'simulated', base_url: 'http://127.0.0.1:8090/v1' });
  await admin.call('put', '/admin/v1/tiers/oloid', {
    rates: { prompt: 1, completion: 1 },
    targets: [{ ...target, context_window: 8_192 }],
  });
  expect(await parley('providers', 'change', 'sim', '{"max_in_flight": 8}')).toMatch(/^max_in_flight +8$/m);

  await parley('models', 'publish', 'gpt-4o', 'oloid', '--target', 'sim/org/model');
  await parley('models', 'publish', 'o/any', 'mobius');
  const [head, ...rows] = (await parley('models')).split('\n');
  expect(head).toMatch(/^id +tier +target/);
  expect(rows.join()).toMatch(/^o\/any +mobius +- .*gpt-4o +oloid +.*"model":"org\/model"|gpt-4o.*o\/any/);
  await parley('models', 'remove', 'o/any');
  expect(await parley('models')).not.toContain('o/any');
  await expect(parley('models', 'publish', 'x', 'gold')).rejects.toThrow(/`tier` must be/);
});

it('a replay that is run goes through all pages, one that is not shows the first', async () => {
  expect(await parley('replay')).toMatch(/^matched +3\nreplayed +0\n/);
  const done = JSON.parse(await parley('--json', 'replay', '--run')) as { data: { id: string }[] };
  expect(done).toMatchObject({ matched: 3, replayed: 2, skipped: 1, retry_after_seconds: 9, next_page: null });
  expect(done).toMatchObject({ skipped_reasons: [{ reason: 'limit_reached', count: 1 }] });
  expect(done.data.map(({ id }) => id)).toEqual(FAILED);
});

it('a doctor says what is right and what is not, with an exit code', async () => {
  const before = process.exitCode;
  expect(await parley('doctor')).toMatch(/^bad +workers +0 of 0 processes$/m);
  expect(process.exitCode).toBe(1);
  process.exitCode = before;
  expect(await parley('doctor')).toMatch(/^ok +settlement +0 dead letters/m);
  process.exitCode = before;
});

it('a fleet of more processes than a page of the API has is shown and counted whole', async () => {
  const { beat } = createProcessRegistry(admin.redis, admin.keyspace);
  const figures = { ...BUILD, protocol: 2, host: 'here', pid: 1, uptimeSeconds: 1, running: 0, draining: false };
  const ids = Array.from({ length: 101 }, (_, index) => `wrk_${index}`);
  await Promise.all(ids.map((id) => beat({ ...figures, id, kind: 'worker' })));

  const shown = await parley('processes');
  expect(shown.match(/^worker/gm)).toHaveLength(101);
  expect(shown).not.toContain('--limit');
  expect(await parley('doctor')).toMatch(/^ok +workers +101 of 101 processes$/m);
  await Promise.all(ids.map((id) => createProcessRegistry(admin.redis, admin.keyspace).remove(id)));
});

it('a request is found by its id and in the list', async () => {
  const id = `req_${'a'.repeat(24)}`;
  const keys = { tenantId: `ten_${'b'.repeat(24)}`, keyId: `key_${'c'.repeat(24)}` };
  const ended = { endpoint: 'chat', status: 'failed', code: 'timeout', createdAt: Date.now() } as const;
  await admin.models.requestLog.create({ _id: id, ...keys, ...ended });
  expect(await parley('requests', '--status', 'failed')).toContain(id);
  expect(await parley('request', id)).toMatch(/^error_code +timeout$/m);
});

it("what is wrong is said in the API's words, with the id of the request", async () => {
  await expect(parley('tenants', 'show', `ten_${'x'.repeat(24)}`)).rejects.toThrow(
    /^There is no tenant .* \(req_\w{24}\)$/,
  );
  const stranger = createParley({ env: { ADMIN_TOKEN: 'wrong' }, print: () => undefined });
  await expect(stranger.parseAsync(['--url', admin.url, 'tenants'], { from: 'user' })).rejects.toThrow(/token/);
});

it("a tenant's name cannot write to the terminal", async () => {
  await parley('tenants', 'create', 'A\u001b[31mB');
  expect(await parley('tenants')).toContain('A [31mB');
});
