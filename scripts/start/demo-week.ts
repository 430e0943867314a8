/**
 * `npm start -- --demo`: a week of traffic, so that every list and chart of the console has something to show.
 *
 * Tenants, keys, entities, chats, a batch, a webhook and a purchase pass the service's own interfaces. Only the past
 * cannot: its charges are booked by the ledger's own store, with the time at which settlement would have booked them,
 * and its requests are written into the request log. The books that this leaves are published to Redis, so
 * `npm run reconcile -- --check` finds no drift.
 */
import type { AttemptTrace } from '../../shared/contracts/events.ts';
import type { ChatRoute } from '../../shared/contracts/jobs.ts';
import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { toMicro } from '../../shared/domain/pricing.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { createAccountRepository } from '../../shared/mongo/accounts/account-repository.ts';
import { createSettlementRepository } from '../../shared/mongo/accounts/settlement-repository.ts';
import { connectMongo } from '../../shared/mongo/connection.ts';
import type { MongoConnection } from '../../shared/mongo/connection.ts';
import { requestLogModel } from '../../shared/mongo/requests/request-log.ts';
import type { RequestLogRow } from '../../shared/mongo/requests/request-log.ts';
import { tenantModel } from '../../shared/mongo/tenants/tenant-repository.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import { createAccountStore } from '../../shared/redis/stores/account-store.ts';
import type { AccountStore } from '../../shared/redis/stores/account-store.ts';
import { withRedis } from '../embedded/redis.ts';
import type { AdminApi } from '../harness/admin-api.ts';
import { callJson } from '../harness/http.ts';
import { RATES } from '../harness/start-processes.ts';
import { SIMULATED_MODEL } from './demo-routes.ts';

const HOUR_MS = 3_600_000;
const HOURS = 7 * 24;
const CREDITS = 4_000_000;
/** Fields of a tenant whose week can be played: its ledger is empty. */
export const WITHOUT_PAST = { credits: 0, monthly_token_budget: 3_000_000 };
/** In the past, an hour of a provider's trouble. */
const OUTAGE_HOUR = 9;
/** Of the past hours at once, of all tenants together: one transaction. */
const BOOKED_HOURS = 4;
const PACKAGES = [
  { id: 'small', name: 'Small', credits: 1_000_000, amount: 500 },
  { id: 'large', name: 'Large', credits: 10_000_000, amount: 4_000 },
];
const QUESTIONS = [
  'Why do bridges have expansion joints?',
  'How does a river find its way to the sea?',
  'What keeps a tall ship upright?',
  'Explain the phases of the moon to a child.',
  'Which rocks does the coast here consist of?',
];
/** The models of the demo cost its operator nothing; in the past they cost what a small and a large one do. */
const NANO_USD = { mobius: 150, oloid: 600 } as const;

export interface DemoWeek {
  admin: AdminApi;
  /** Of the ingress. */
  baseUrl: string;
  mongo: MongoConnection;
  accounts: AccountStore;
  /** Without any entry in the ledger yet, and its live key. */
  tenant: { tenantId: string; liveKey: { id: string; value: string } };
}

/** A caller of the past: `busy` is how many requests it makes at noon in an hour. */
interface Caller {
  tenantId: string;
  keyId: string;
  tier: 'mobius' | 'oloid';
  endpoint: ChatRoute;
  busy: number;
}

/** From 0 to 1; looks like chance, and is the same every time. */
const chance = (at: number, seed: number) => Math.abs(Math.sin(at * 12.9898 + seed * 78.233) * 43_758.5453) % 1;

/** Makes up the end of a request of the past: its row of the log, and its charge. */
function pastRequest({ tenantId, keyId, tier, endpoint }: Caller, acceptedAt: number, at: number, isOutage: boolean) {
  const requestId = newId('req');
  const lot = chance(at, 2);
  const status = lot < (isOutage ? 0.4 : 0.015) ? 'failed' : lot > 0.985 ? 'cancelled' : 'completed';
  const startedAt = acceptedAt + Math.round(5 + 40 * chance(at, 3));
  const firstTokenAt = startedAt + Math.round((tier === 'oloid' ? 420 : 180) * (0.6 + chance(at, 4) ** 4 * 4));
  const completionTokens = Math.round(80 + 420 * chance(at, 5));
  const finishedAt = firstTokenAt + completionTokens * 12;
  const promptTokens = Math.round(60 + 600 * chance(at, 6));
  const target = { provider: 'simulated', model: SIMULATED_MODEL };
  const times = { startedAt, endedAt: status === 'failed' ? startedAt + 30 : finishedAt };
  const attempts: AttemptTrace[] = [{ ...target, ...times, outcome: status === 'failed' ? 'http_503' : 'ok' }];
  const common = { _id: requestId, tenantId, keyId, tier, endpoint, createdAt: acceptedAt };
  if (status === 'cancelled') {
    const row: RequestLogRow = { ...common, status, finishReason: 'cancelled', finishedAt: startedAt };
    return { row };
  }
  const run = { ...common, startedAt, moderatedAt: startedAt + 2, verdict: 'passed', attempts, ...target };
  if (status === 'failed') {
    const reason = `model_unavailable: ${target.provider} ${target.model} http_503, attempt 1`;
    const end = { code: 'model_unavailable', finishReason: 'error', finishedAt: times.endedAt } as const;
    const row: RequestLogRow = { ...run, ...end, status, reason, costMicro: 0 };
    return { row };
  }
  const charge: SettlementRecord = {
    ...{ requestId, tenantId, keyId, mode: 'live', tier, endpoint, ...target, acceptedAt, finishedAt },
    ...{ promptTokens, completionTokens, estimated: false, finishReason: 'stop' },
    costMicro: toMicro(promptTokens * RATES[tier].prompt + completionTokens * RATES[tier].completion),
    spend: { currency: 'usd', nano: (promptTokens + 4 * completionTokens) * NANO_USD[tier] },
    ...(at % 3 === 0 ? {} : { entityId: `visitor-${1 + (at % 5)}` }),
  };
  const { costMicro, finishReason, spend } = charge;
  const end = { firstTokenAt, finishedAt, finishReason, promptTokens, completionTokens, estimated: false };
  const row: RequestLogRow = { ...run, ...end, status, costMicro, ...(spend && { spend }) };
  return { row, charge };
}

/** Few by night, most at noon. */
function pastHour(caller: Caller, hourMs: number, which: number, isOutage: boolean) {
  const daylight = Math.sin((((hourMs / HOUR_MS) % 24) / 24) * Math.PI) ** 2;
  const requests = Math.round(caller.busy * (0.1 + daylight) * (0.7 + 0.6 * chance(hourMs / HOUR_MS, which)));
  return Array.from({ length: requests }, (_, at) => {
    const seed = hourMs / HOUR_MS + which * 131 + at * 17;
    return pastRequest(caller, Math.floor(hourMs + ((at + chance(seed, 1)) / requests) * HOUR_MS), seed, isOutage);
  });
}

async function bookPast({ mongo, accounts }: DemoWeek, callers: readonly Caller[]): Promise<void> {
  const until = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  const from = until - HOURS * HOUR_MS;
  const tenantIds = [...new Set(callers.map(({ tenantId }) => tenantId))];
  const ledger = createAccountRepository(mongo);
  const settlements = createSettlementRepository(mongo);
  const amountMicro = toMicro(CREDITS);
  for (const tenantId of tenantIds)
    await ledger.book({ tenantId, type: 'grant', amountMicro, reason: 'Initial credits', now: from });
  for (let hourMs = from; hourMs < until; hourMs += BOOKED_HOURS * HOUR_MS) {
    const hours = Array.from({ length: BOOKED_HOURS }, (_, at) => hourMs + at * HOUR_MS);
    const past = hours.flatMap((hour) =>
      callers.flatMap((caller, at) => pastHour(caller, hour, at, hour === until - OUTAGE_HOUR * HOUR_MS)),
    );
    await requestLogModel(mongo).insertMany(past.map(({ row }) => row));
    await settlements.settle(
      past.flatMap(({ charge }) => charge ?? []),
      hourMs + BOOKED_HOURS * HOUR_MS,
    );
  }
  for (const tenantId of tenantIds) {
    const [book, row] = [await ledger.read(tenantId), await tenantModel(mongo).findById(tenantId, { shard: 1 }).lean()];
    if (book !== undefined && row !== null) await accounts.publishBalance(row.shard, tenantId, book);
  }
}

async function openTenant(admin: AdminApi, name: string): Promise<Omit<Caller, 'tier' | 'endpoint' | 'busy'>> {
  const { id } = await admin.send('POST', '/admin/v1/tenants', { name, ...WITHOUT_PAST });
  const key = { name: 'Production', mode: 'live', scopes: ['*'] };
  const { id: keyId } = await admin.send('POST', `/admin/v1/tenants/${String(id)}/keys`, key);
  return { tenantId: String(id), keyId: String(keyId) };
}

/** Calls the service as the tenant, so that there are answers, a conversation, a batch, deliveries and a purchase to look at. */
async function playPresent({ baseUrl, tenant }: DemoWeek): Promise<void> {
  const url = `${baseUrl}/platform/v1`;
  const send = (path: string, body: unknown) =>
    callJson('POST', `${url}${path}`, { token: tenant.liveKey.value, body });
  const ask = (content: string, more: object = {}) => ({ messages: [{ role: 'user', content }], ...more });
  // No receiver: its deliveries fail, and are tried again. A service that forbids private addresses refuses it.
  await send('/webhooks', { url: 'http://127.0.0.1:9/parley', events: ['batch.completed', 'credits.purchased'] });
  await send('/entities', { entity_id: 'visitor-1', name: 'Ada', subject: 'Engineering', grade: '9' });
  await send('/entities', { entity_id: 'visitor-2', name: 'Grace', metadata: { class: '7b' } });
  const lines = QUESTIONS.map((content, at) => ({ custom_id: `question-${at + 1}`, body: ask(content) }));
  await send('/batches', { requests: [...lines, { custom_id: 'without-a-question', body: { messages: [] } }] });
  await Promise.all([
    ...QUESTIONS.map((content, at) => send('/chat', ask(content, { entity_id: `visitor-${at + 1}` }))),
    ...QUESTIONS.map((content) => send('/chat/stream', ask(content, { model: 'oloid' }))),
    send('/chat', ask('')),
    send('/chat', ask('Hello', { model: 'gpt-17' })),
  ]);
  const back = `${baseUrl}/console/#/billing`;
  const { body } = await send('/billing/checkout', { package_id: 'small', success_url: back, cancel_url: back });
  if (typeof body['url'] === 'string') await callJson('POST', body['url'], { body: 'action=pay' });
  await send('/compliance/exports', { scope: 'entity', entity_id: 'visitor-1' });
}

/** Plays the week of three tenants. A tenant that has entries in the ledger already must not be played again. */
export async function playWeek(week: DemoWeek): Promise<void> {
  const { admin, tenant } = week;
  const { updated_at: isPriced } = (await admin.find('/admin/v1/packages')) ?? {};
  if (isPriced === null)
    await admin.send('PUT', '/admin/v1/packages', {
      currency: 'usd',
      price_per_million_credits: 500,
      packages: PACKAGES,
    });
  const { tenantId, liveKey } = tenant;
  const nightly = { name: 'Nightly batches', mode: 'live', scopes: ['chat', 'usage'] };
  const { id } = await admin.send('POST', `/admin/v1/tenants/${tenantId}/keys`, nightly);
  const [museum, school] = [await openTenant(admin, 'Harbour Museum'), await openTenant(admin, 'Kettle School')];
  await bookPast(week, [
    { tenantId, keyId: liveKey.id, tier: 'mobius', endpoint: 'chat.stream', busy: 9 },
    { tenantId, keyId: liveKey.id, tier: 'oloid', endpoint: 'chat', busy: 4 },
    { tenantId, keyId: String(id), tier: 'mobius', endpoint: 'batch', busy: 3 },
    { ...museum, tier: 'mobius', endpoint: 'chat.stream', busy: 4 },
    { ...school, tier: 'oloid', endpoint: 'chat', busy: 2 },
  ]);
  await playPresent(week);
}

/** Plays the week into the stores that a start has opened. */
export async function playWeekInto(
  { REDIS_URL, MONGODB_URI }: { REDIS_URL: string; MONGODB_URI: string },
  week: Omit<DemoWeek, 'mongo' | 'accounts'>,
): Promise<void> {
  const mongo = await connectMongo(MONGODB_URI);
  try {
    await withRedis(REDIS_URL, (redis) =>
      playWeek({ ...week, mongo, accounts: createAccountStore(redis, createKeyspace()) }),
    );
  } finally {
    await mongo.close();
  }
}
