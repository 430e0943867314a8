import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf } from '../support/chat.ts';
import { openFleet } from '../support/fleet.ts';
import type { ApiProcess, Fleet } from '../support/fleet.ts';
import { openLiveStream, post } from '../support/live-stream.ts';

const CREDITS = 10_000_000;
const REQUESTS = 500;
const CLIENTS = 32;
const TENANTS = 3;
const ENTITIES = 10;

interface Answered {
  requestId: string;
  status: number;
  usage: { prompt_tokens: number; completion_tokens: number } | undefined;
}

describe(`after ${REQUESTS} mixed requests from ${CLIENTS} clients`, () => {
  let fleet: Fleet;
  let apis: ApiProcess[];
  let tenants: { tenantId: string; liveKey: string; testKey: string }[];
  beforeAll(async () => {
    fleet = await openFleet();
    apis = await Promise.all([fleet.startApi(), fleet.startApi()]);
    await Promise.all([fleet.startWorker(), fleet.startWorker()]);
    tenants = await Promise.all(Array.from({ length: TENANTS }, () => fleet.startTenant(CREDITS)));
  }, 40_000);
  afterAll(async () => {
    await fleet.close();
  });

  /** Every combination of route, key kind, entity and tier comes up, by the digits of the number. */
  async function ask(number: number): Promise<Answered & { tenantId: string }> {
    const { url } = apis[number % 2] ?? { url: '' };
    const { tenantId, liveKey, testKey } = tenants[number % TENANTS] ?? { tenantId: '', liveKey: '', testKey: '' };
    const key = number % 5 === 0 ? testKey : liveKey;
    const body = chatOf(`Question ${number} `.repeat(1 + (number % 7)), {
      ...(number % 4 === 0 ? { entity_id: `entity-${number % ENTITIES}` } : {}),
      ...(number % 11 === 0 ? { model: 'oloid' } : {}),
    });
    if (number % 3 === 0) {
      const stream = await openLiveStream(url, key, body);
      const { usage } = await stream.ended;
      return { tenantId, requestId: stream.requestId, status: stream.status, usage };
    }
    const response = await post(url, key, '/chat', body);
    const { usage } = (await response.json()) as Pick<Answered, 'usage'>;
    const requestId = String(response.headers.get('x-request-id'));
    return { tenantId, requestId, status: response.status, usage };
  }

  it('the ledger equals the provider’s own count of calls and tokens, and what the callers were told', async () => {
    const answered: (Answered & { tenantId: string })[] = [];
    let next = 0;
    const client = async () => {
      for (let number = next++; number < REQUESTS; number = next++) answered.push(await ask(number));
    };

    await Promise.all(Array.from({ length: CLIENTS }, client));
    const rests = await Promise.all(tenants.map(({ tenantId }) => fleet.atRest(tenantId)));

    expect(new Set(answered.map(({ status }) => status))).toEqual(new Set([200]));
    const counted = await fleet.providerCounts();
    const rows = await fleet.models.ledger.find({ type: 'usage' }).lean();
    const tokens = (prompt?: number, completion?: number) => [prompt, completion];
    const byProvider = new Map(
      [...counted].map(([id, count]) => [id, [count.calls, ...tokens(count.prompt_tokens, count.completion_tokens)]]),
    );
    const byLedger = new Map(
      rows.map((row) => [row.requestId, [1, ...tokens(row.promptTokens, row.completionTokens)]]),
    );
    const byCaller = new Map(
      answered.map(({ requestId, usage }) => [
        requestId,
        [1, ...tokens(usage?.prompt_tokens, usage?.completion_tokens)],
      ]),
    );
    expect(rows).toHaveLength(REQUESTS);
    expect(byProvider).toEqual(byLedger);
    expect(byCaller).toEqual(byLedger);
    for (const row of rows) {
      const rate = row.mode === 'test' ? 0 : row.tier === 'oloid' ? 4_000_000 : 1_000_000;
      expect(row.amountMicro).toBe(0 - ((row.promptTokens ?? 0) + (row.completionTokens ?? 0)) * rate);
      expect(row.estimated).toBe(false);
    }
    for (const { balance, spentMicro } of rests) {
      expect(Math.round(balance * 1_000_000)).toBe(CREDITS * 1_000_000 - spentMicro);
    }
  }, 60_000);
});
