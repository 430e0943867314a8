import { setTimeout as pause } from 'node:timers/promises';

import { beforeAll, expect, it } from '@jest/globals';

import { createChance } from '../support/chance.ts';
import { openFleet } from '../support/fleet.ts';
import type { ApiProcess } from '../support/fleet.ts';
import { useStarted } from '../support/use-service.ts';

const ADMIN_TOKEN = 'an-administrator-token-of-tests-0123456789';
/** More of them, and other seeds, look further: 200 steps of each of three seeds found nothing else. */
const STEPS = 20;
const SEED = 4;

let apis: ApiProcess[];
const fleet = useStarted('fleet', openFleet);
beforeAll(async () => {
  // Wrong keys come from addresses of their own.
  apis = [await fleet.startApi({ TRUST_PROXY: 'loopback' }), await fleet.startApi({ TRUST_PROXY: 'loopback' })];
  await fleet.startWorker();
});

const chance = createChance(SEED);

interface Answer {
  status: number;
  body: Record<string, unknown>;
  rpm: number;
}

async function call(url: string, method: string, token: string, body?: object, idempotencyKey?: string) {
  const response = await fetch(url, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'X-Forwarded-For': `10.1.${chance.below(250)}.${chance.below(250)}`,
      ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer: Answer = {
    status: response.status,
    // Objects only, by docs/spec.md#conventions.
    body: (await response.json()) as Record<string, unknown>,
    rpm: Number(response.headers.get('x-ratelimit-limit-requests')),
  };
  return answer;
}

const admin = (method: string, path: string, body?: object, idempotencyKey?: string, at = chance.pick(apis)) =>
  call(`${at.adminUrl}/admin/v1${path}`, method, ADMIN_TOKEN, body, idempotencyKey);
const api = (at: ApiProcess, method: string, path: string, key: string, body?: object) =>
  call(`${at.url}/platform/v1${path}`, method, key, body);

interface Key {
  id: string;
  value: string;
}

/** What was acknowledged of it. */
interface Tenant {
  id: string;
  status: string;
  granted: number;
  /** Is never revoked. */
  root: Key;
  keys: Key[];
}

async function makeKey(tenantId: string): Promise<Key> {
  const { status, body } = await admin('POST', `/tenants/${tenantId}/keys`, { name: 'key' });
  expect(status).toBe(201);
  return { id: String(body['id']), value: String(body['value']) };
}

async function makeTenant(): Promise<Tenant> {
  const limits = { rpm: 50_000, tpm: 100_000_000, chat_rpm: 50_000, tenant_rpm: null };
  const { body } = await admin('POST', '/tenants', { name: 'test', credits: 100_000, ...limits });
  const id = String(body['id']);
  return { id, status: 'active', granted: 100_000, root: await makeKey(id), keys: [await makeKey(id)] };
}

/** On every ingress; what the specification gives a second may take some more on a machine that is busy. */
async function expectEverywhere(
  what: string,
  look: (at: ApiProcess) => Promise<unknown>,
  wanted: unknown,
  limitMs = 0,
) {
  for (const at of apis) {
    const until = Date.now() + limitMs;
    let found = await look(at);
    while (found !== wanted && Date.now() < until) {
      await pause(25);
      found = await look(at);
    }
    expect([what, found]).toEqual([what, wanted]);
  }
}

const statusWith = (value: string) => async (at: ApiProcess) => (await api(at, 'GET', '/models', value)).status;
const isServed = ({ status }: Tenant) => (status === 'active' ? 200 : 403);
const SOON_MS = 5_000;

const OPERATIONS: Readonly<Record<string, (tenant: Tenant, step: number) => Promise<void>>> = {
  async status(tenant) {
    tenant.status = chance.pick(['active', 'suspended']);
    const { status } = await admin('PATCH', `/tenants/${tenant.id}`, { status: tenant.status });
    expect(status).toBe(200);
    // A suspension holds at once.
    await expectEverywhere(
      tenant.status,
      statusWith(tenant.root.value),
      isServed(tenant),
      tenant.status === 'active' ? SOON_MS : 0,
    );
  },

  async statusesAtOnce(tenant) {
    const statuses = ['active', 'suspended', 'active', 'suspended'];
    await Promise.all(
      statuses.map((status, index) =>
        admin('PATCH', `/tenants/${tenant.id}`, { status }, undefined, apis[index % apis.length]),
      ),
    );
    tenant.status = String((await admin('GET', `/tenants/${tenant.id}`)).body['status']);
    await expectEverywhere('the last status', statusWith(tenant.root.value), isServed(tenant), SOON_MS);
  },

  async limit(tenant) {
    const rpm = 40_000 + chance.below(10_000);
    await Promise.all([
      admin('PATCH', `/tenants/${tenant.id}`, { rpm }, undefined, apis[0]),
      admin('PATCH', `/tenants/${tenant.id}`, { weight: 1 + chance.below(9) }, undefined, apis[1]),
    ]);
    const limitAt = async (at: ApiProcess) => (await api(at, 'GET', '/models', tenant.root.value)).rpm;
    await expectEverywhere('the limit', limitAt, rpm, SOON_MS);
  },

  async credits(tenant, step) {
    const credits = chance.below(500) - 100.5;
    const book = (at: ApiProcess) =>
      admin('POST', `/tenants/${tenant.id}/credits`, { credits, reason: 'test' }, `step ${step}`, at);
    const answers = await Promise.all([...apis, ...apis].map(book));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(new Set(answers.map(({ body }) => body['id'])).size).toBe(1);
    tenant.granted += credits;
  },

  async revocation(tenant) {
    const key = tenant.keys.pop() ?? (await makeKey(tenant.id));
    // Another change of the key at the same time brings it not back.
    const rename = api(chance.pick(apis), 'PATCH', `/keys/${key.id}`, tenant.root.value, { name: 'renamed' });
    const { status } = await admin('DELETE', `/tenants/${tenant.id}/keys/${key.id}`);
    await rename;
    expect(status).toBe(200);
    await expectEverywhere('a revoked key', statusWith(key.value), 401);
  },

  async rotation(tenant) {
    if (tenant.status !== 'active') return;
    const key = await makeKey(tenant.id);
    const { status, body } = await api(chance.pick(apis), 'POST', `/keys/${key.id}/rotate`, tenant.root.value);
    expect(status).toBe(200);
    await expectEverywhere('the new value', statusWith(String(body['value'])), 200);
    await expectEverywhere('the old value', statusWith(key.value), 401, SOON_MS);
    tenant.keys.push({ id: key.id, value: String(body['value']) });
  },

  async route(_tenant, step) {
    const provider = `provider-${step}`;
    const before = (await admin('GET', '/tiers/mobius')).body['targets'] as { provider: string }[];
    await admin('PUT', `/providers/${provider}`, { kind: 'simulated', base_url: `${fleet.providerUrl}/v1` });
    const rates = { prompt: 1, completion: 1 };
    const put = await admin('PUT', '/tiers/mobius', { rates, targets: [{ provider, model: 'sim' }] });
    const former = before[0]?.provider ?? '';
    // The other tier leads to the first one.
    const gone = await admin('DELETE', `/providers/${former}`);
    expect([put.status, gone.status]).toEqual([200, former === 'simulated' ? 409 : 200]);
  },
};

it('what two ingresses acknowledge to administrators holds on both, beside traffic', async () => {
  const tenants = [await makeTenant(), await makeTenant()];
  const traffic = { isOver: false, served: 0, faults: [] as Answer[] };
  const chat = { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 };
  const callers = Array.from({ length: 4 }, async () => {
    while (!traffic.isOver) {
      const { root, keys } = chance.pick(tenants);
      const answer = await api(chance.pick(apis), 'POST', '/chat', chance.pick([root, ...keys]).value, chat);
      if (answer.status === 200) traffic.served += 1;
      else if (answer.status >= 500) traffic.faults.push(answer);
      await pause(20);
    }
  });
  const names = Object.keys(OPERATIONS);
  for (let step = 0; step < STEPS; step += 1) {
    // Each at least once.
    const name = names[step] ?? chance.pick(names);
    await OPERATIONS[name]?.(chance.pick(tenants), step);
  }
  traffic.isOver = true;
  await Promise.all(callers);

  expect(traffic.faults).toEqual([]);
  expect(traffic.served).toBeGreaterThan(0);
  for (const tenant of tenants) {
    const { balance, spentMicro } = await fleet.atRest(tenant.id);
    expect(Math.round(balance * 1e6)).toBe(tenant.granted * 1e6 - spentMicro);
  }
});
