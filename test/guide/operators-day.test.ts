/** An operator's day, as the guide has it: what stands in its blocks is run as it stands, on real processes. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from '@jest/globals';

import { ROOT } from '../../scripts/harness/program.ts';
import { openFleet } from '../support/fleet.ts';
import type { ApiProcess, Fleet } from '../support/fleet.ts';
import { waitFor, waitUntil } from '../support/wait-for.ts';

const TOKEN = 'an-administrator-token-of-tests-0123456789';
let fleet: Fleet;
beforeAll(async () => {
  fleet = await openFleet();
  await fleet.startWorker();
}, 120_000);
afterAll(async () => {
  await fleet.close();
});

/** Runs a script in a shell, which ends with its first command that fails. `npx parley` is the sources' own program. */
function shell(script: string, { adminUrl }: ApiProcess = fleet.api, token = TOKEN): Promise<string> {
  const parley = `npx() { shift; '${process.execPath}' scripts/parley.ts "$@"; }\nparley() { npx parley "$@"; }`;
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, A: adminUrl, ADMIN_TOKEN: token, PARLEY_ADMIN_URL: adminUrl, PARLEY_ADMIN_TOKEN: token };
  return new Promise((resolve, reject) => {
    execFile('bash', ['-euc', `${parley}\n${script}`], { cwd: ROOT, env, timeout: 50_000 }, (error, printed, said) => {
      if (error === null) resolve(printed);
      else reject(new Error(`${said}${printed}`, { cause: error }));
    });
  });
}

/** The blocks of commands of a page, between two of its headings. */
function blocksOf(page: string, from: string, to: string): string {
  const text = readFileSync(join(ROOT, 'docs', 'guide', page), 'utf8');
  const [start, end] = [text.indexOf(`\n## ${from}\n`), text.indexOf(`\n## ${to}\n`)];
  if (start === -1 || end < start) throw new Error(`${page} has no part from ${from} to ${to}`);
  return [...text.slice(start, end).matchAll(/^( *)```sh\n([^]*?)^ *```$/gm)]
    .map(([, indent = '', block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))
    .join('\n')
    .replaceAll('http://127.0.0.1:8081', fleet.api.adminUrl)
    .replaceAll(/http:\/\/127\.0\.0\.1:8090|https:\/\/api\.openai\.com/g, fleet.providerUrl)
    .replaceAll('TOKEN=...', `TOKEN=${TOKEN}`);
}

/** Of the guide's second page: the address, the token and `admin`. */
const PRELUDE = () => `export ADMIN_URL=$A/admin/v1\n${/^admin\(\) \{[^]*?^\}$/m.exec(page())?.[0] ?? ''}`;
const page = () => readFileSync(join(ROOT, 'docs', 'guide', 'administration.md'), 'utf8');
const admin = async (call: string) => JSON.parse(await shell(`${PRELUDE()}\nadmin ${call}`)) as Record<string, unknown>;
const idIn = (text: string, prefix: string) => new RegExp(`${prefix}_\\w{24}`).exec(text)?.[0] ?? '';

async function chat(key: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${fleet.api.url}/platform/v1/chat`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }] }),
  });
}
const rowOf = (id: string, what: RegExp) =>
  waitFor(async () => {
    const row = await shell(`parley request ${id}`).catch(() => '');
    return what.test(row) ? row : undefined;
  }, `${id} in the list`);

it('sets up an installation by the commands of the guide, and the first call is answered', async () => {
  const setUp = blocksOf('administration.md', 'Set up', 'Rotate the credentials key');
  const printed = await shell(`${PRELUDE()}\n${setUp}\nprintf '\\n%s %s' "$TENANT_ID" "$API_KEY"`);

  const [tenantId = '', key = ''] = printed.trim().split('\n').at(-1)?.split(' ') ?? [];
  expect([tenantId, key]).toEqual([expect.stringMatching(/^ten_/), expect.stringMatching(/^svc_sk_live_/)]);
  const status = await waitFor(async () => ((await chat(key)).ok ? 200 : undefined), 'an answer', 5_000);
  expect(status).toBe(200);
}, 60_000);

it('does the commands of day to day, of the command line and of the runbook as they stand', async () => {
  const { tenantId } = await fleet.startTenant(1_000);
  const days = blocksOf('administration.md', 'Day to day', 'Providers');
  const printed = await shell(`${PRELUDE()}\nexport TENANT_ID=${tenantId}\n${days}`);
  expect(printed).toMatch(/^ok +workers +1 of \d processes$/m);
  expect(printed).toMatch(/^ok +true$/m);
  const looks = await shell(blocksOf('runbook.md', 'Look here first', 'Service'));
  expect(looks).toContain('"dead_letters":0');
  const replay = await shell(blocksOf('runbook.md', 'Providers', 'Money'));
  expect(replay).toContain('"dry_run":true');
  await shell('parley queues resume 0:interactive');
}, 120_000);

it('makes a tenant and a key, and books a grant once however often it is sent', async () => {
  const tenant = idIn(await shell("parley tenants create 'Lakeside School' --credits 500"), 'ten');
  for (let times = 0; times < 2; times += 1)
    await shell(`parley tenants grant ${tenant} 250 --key invoice-17 --reason 'Invoice 17'`);
  await admin(`-X PATCH "$ADMIN_URL/tenants/${tenant}" -d '{"rpm": 600}'`);

  expect(await shell(`parley keys create ${tenant} --name app --scopes chat`)).toMatch(/^value +svc_sk_live_/m);
  expect(await shell(`parley tenants show ${tenant}`)).toMatch(/^balance +750$/m);
}, 60_000);

it('tries a provider, changes a tier and takes that back', async () => {
  expect(await shell('parley providers test simulated')).toMatch(/^message +The provider answers\.$/m);
  const targets =
    '[{"provider": "simulated", "model": "sim", "cost": {"currency": "usd", "prompt": 1, "completion": 2}}]';
  await admin(`-X PUT "$ADMIN_URL/tiers/mobius" -d '{"rates": {"prompt": 1, "completion": 1}, "targets": ${targets}}'`);
  const { version } = await admin('"$ADMIN_URL/tiers/mobius"');
  await admin(`"$ADMIN_URL/tiers/mobius/rollback" -d '{"version": ${Number(version) - 1}}'`);
  const back = await admin(`"$ADMIN_URL/tiers/mobius/rollback" -d '{"version": ${Number(version)}}'`);
  expect(back['targets']).toMatchObject([{ cost: { currency: 'usd', prompt: 1, completion: 2 } }]);
  await expect(admin('-X DELETE "$ADMIN_URL/providers/simulated"')).rejects.toThrow(/is a target of/);
}, 60_000);

it('sees who used what and what it costs, and finds one request by its id', async () => {
  const { tenantId, liveKey } = await fleet.startTenant(1_000_000);
  const served = await chat(liveKey);
  const refused = await chat(liveKey, { 'Content-Type': 'text/plain' });
  const idOf = ({ headers }: Response) => headers.get('x-request-id') ?? '';
  await fleet.atRest(tenantId);

  expect(await shell('parley usage --by tenant_id')).toMatch(new RegExp(`${tenantId} +1 `));
  // The tier's cost may be a second old, and a request counts by the cost of its time.
  await waitFor(async () => {
    await chat(liveKey);
    await fleet.atRest(tenantId);
    return (await shell('parley usage --by tenant_id --margin')).match(`${tenantId} .* usd `);
  }, 'the margin');
  expect(await rowOf(idOf(served), /^status +completed$/m)).toMatch(/^provider +simulated$/m);
  expect(await rowOf(idOf(refused), /^status +refused$/m)).toMatch(new RegExp(`^tenant_id +${tenantId}$`, 'm'));
  const rows = await admin(`"$ADMIN_URL/tenants/${tenantId}/transactions"`);
  expect(rows['data']).toEqual(expect.arrayContaining([expect.objectContaining({ request_id: idOf(served) })]));
}, 60_000);

it('pauses a queue, whose requests wait and can be cancelled, and runs what failed in an outage again', async () => {
  const { liveKey } = await fleet.startTenant(1_000_000);
  await fleet.changeProvider({ fail: 'status', status: 500, fail_rate: 1 });
  const failed = (await chat(liveKey, { 'Idempotency-Key': 'a-call' })).headers.get('x-request-id') ?? '';
  await fleet.changeProvider();
  await shell(`${PRELUDE()}\nadmin -X POST "$ADMIN_URL/breakers/simulated/reset"`);
  await waitUntil(async () => /^matched +[1-9]/m.test(await shell('parley replay')), 'the failure');
  expect(await shell('parley replay --run')).toContain(failed);
  await rowOf(failed, /^status +completed$/m);

  await shell('parley queues pause 0:interactive');
  const waiting = await chat(liveKey, { Prefer: 'respond-async' });
  const { id } = (await waiting.json()) as { id: string };
  expect(await shell('parley queues')).toMatch(/^0:interactive +1 /m);
  const headers = { Authorization: `Bearer ${liveKey}` };
  await fetch(`${fleet.api.url}/platform/v1/chat/${id}/cancel`, { method: 'POST', headers });
  expect(await rowOf(id, /^status +cancelled$/m)).toMatch(/^reason +cancelled while it waited$/m);
  expect(await shell('parley queues resume 0:interactive')).toMatch(/^paused +false$/m);
}, 120_000);

it('lets a customer go: suspended, exported, closed', async () => {
  const { tenantId, liveKey } = await fleet.startTenant(1_000);
  await chat(liveKey);
  expect(await shell(`parley tenants suspend ${tenantId}`)).toMatch(/^status +suspended$/m);
  expect((await chat(liveKey)).status).toBe(403);
  const { id } = await admin(`"$ADMIN_URL/tenants/${tenantId}/exports" -d '{"scope": "tenant"}'`);
  const look = `"$ADMIN_URL/tenants/${tenantId}/exports/${String(id)}"`;
  await waitUntil(async () => (await admin(look))['status'] === 'completed', 'the export', 30_000);
  expect(await shell(`parley tenants close ${tenantId} --yes`)).toMatch(/^status +closed$/m);
}, 90_000);

it('replaces the token of the administration and the key of stored secrets while callers are served', async () => {
  const { liveKey } = await fleet.startTenant(1_000);
  const next = 'another-administrator-token-0123456789abcdef';
  const [formerKey = '', newKey] = [fleet.settings['CREDENTIALS_KEY'], Buffer.alloc(32, 9).toString('base64')];
  const tokens = { ADMIN_TOKEN: '', ADMIN_TOKENS: `dana:write:${TOKEN},dana:write:${next}` };
  const replaced = await fleet.startApi({ ...tokens, CREDENTIALS_KEY: newKey, CREDENTIALS_KEYS: formerKey });
  const rotate = `${PRELUDE()}\nadmin -X POST "$ADMIN_URL/credentials/rotate"`;

  expect(await shell('parley tenants list --limit 1', replaced)).toContain('ten_');
  expect(await shell(rotate, replaced, next)).toMatch(/"remaining":0/);
  expect((await chat(liveKey)).status).toBe(200);
}, 60_000);

it('knows who did what, and who runs', async () => {
  const log = await admin('"$ADMIN_URL/audit_log?limit=100"');
  const paths = (log['data'] as { actor: string; path: string; status: number }[]).map(({ path }) => path);
  expect(paths).toEqual(
    expect.arrayContaining(['/admin/v1/queues/0%3Ainteractive/pause', '/admin/v1/credentials/rotate']),
  );
  expect(await shell('parley processes')).toMatch(/^worker +0\.1\.0 /m);
}, 60_000);
