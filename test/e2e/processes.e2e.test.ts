import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, waitUntil } from '../support/chat.ts';
import { openFleet } from '../support/fleet.ts';
import type { ApiProcess, Fleet, WorkerProcess } from '../support/fleet.ts';
import { openStream, post } from '../support/stream-client.ts';

const CREDITS = 1_000_000;
const REQUESTS = 500;
const CLIENTS = 32;
const TENANTS = 3;
const ENTITIES = 10;

type Tenant = Awaited<ReturnType<Fleet['startTenant']>>;
const NOBODY: Tenant = { tenantId: '', liveKey: '', testKey: '' };

interface Answered {
  tenantId: string;
  requestId: string;
  status: number;
  usage: { prompt_tokens: number; completion_tokens: number } | undefined;
}

/** Of one worker: fewer than the requests that are sent at once, so that no worker can take them all. */
const CONCURRENCY = 40;

describe('the service as processes', () => {
  let fleet: Fleet;
  let apis: ApiProcess[];
  let workers: WorkerProcess[];
  beforeAll(async () => {
    fleet = await openFleet();
    const startWorker = () => fleet.startWorker({ WORKER_CONCURRENCY: String(CONCURRENCY) });
    const [second, ...started] = await Promise.all([fleet.startApi(), startWorker(), startWorker()]);
    apis = [fleet.api, second];
    workers = started;
  }, 60_000);
  afterAll(async () => {
    await fleet.close();
  });

  const urlOf = (index: number) => apis[index % apis.length]?.url ?? '';

  /** How many requests a worker has ended. */
  async function endedBy({ url }: WorkerProcess): Promise<number> {
    const text = await (await fetch(`${url}/metrics`)).text();
    const counts = [...text.matchAll(/^parley_requests_total\{[^}]*\} (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  it('stream an answer as it is made, and book what the provider counted', async () => {
    await fleet.changeProvider({ chunks: 20, chunk_ms: 100 });
    const { liveKey, tenantId } = await fleet.startTenant(CREDITS);

    const stream = await openStream(urlOf(0), liveKey, chatOf('Tell me of the sea'));
    const read = await stream.ended;
    await fleet.changeProvider();

    expect(read).toMatchObject({ finishReason: 'stop', isDone: true, end: 'closed' });
    expect((read.events.at(-1)?.at ?? 0) - (read.events[0]?.at ?? 0)).toBeGreaterThan(300);
    const counted = (await fleet.providerCounts()).get(stream.requestId);
    expect(read.usage).toEqual({ prompt: counted?.prompt_tokens, completion: counted?.completion_tokens });
    const { balance, requestIds } = await fleet.atRest(tenantId);
    expect(requestIds).toEqual([stream.requestId]);
    expect(balance).toBe(CREDITS - (counted?.prompt_tokens ?? 0) - (counted?.completion_tokens ?? 0));
  });

  it('share the work: two ingresses and two workers', async () => {
    const { liveKey } = await fleet.startTenant(CREDITS);
    const before = await Promise.all(workers.map(endedBy));
    // Longer than it takes to send them all.
    await fleet.changeProvider({ first_token_ms: 4_000 });

    const statuses = await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const response = await post(urlOf(index), liveKey, '/chat', chatOf(`Number ${index}`));
        return response.status;
      }),
    );
    await fleet.changeProvider();

    expect(new Set(statuses)).toEqual(new Set([200]));
    const ended = await Promise.all(workers.map(endedBy));
    const shares = ended.map((count, index) => count - (before[index] ?? 0));
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(60);
    for (const share of shares) expect(share).toBeGreaterThanOrEqual(60 - CONCURRENCY);
  });

  it('give a second ingress the history of an entity that the first one has begun', async () => {
    const { liveKey } = await fleet.startTenant(CREDITS);
    const ask = (index: number, content: string) =>
      post(urlOf(index), liveKey, '/chat', chatOf(content, { entity_id: 'pupil-1' }));
    await (await ask(0, 'My name is Ada.')).json();

    const second = await ask(1, 'What is my name?');

    const requestId = String(second.headers.get('x-request-id'));
    const seen: unknown = await (await fetch(`${fleet.providerUrl}/stats/requests/${requestId}`)).json();
    expect(seen).toMatchObject({
      messages: [
        { role: 'user', content: 'My name is Ada.' },
        { role: 'assistant' },
        { role: 'user', content: 'What is my name?' },
      ],
    });
  });

  /** Every combination of route, key kind, entity and tier comes up, by the digits of the number. */
  async function ask(tenants: readonly Tenant[], number: number): Promise<Answered> {
    const url = urlOf(number);
    const { tenantId, liveKey, testKey } = tenants[number % TENANTS] ?? NOBODY;
    const key = number % 5 === 0 ? testKey : liveKey;
    const body = chatOf(`Question ${number} `.repeat(1 + (number % 7)), {
      ...(number % 4 === 0 ? { entity_id: `entity-${number % ENTITIES}` } : {}),
      ...(number % 11 === 0 ? { model: 'oloid' } : {}),
    });
    if (number % 3 === 0) {
      const stream = await openStream(url, key, body);
      const { usage: { prompt = 0, completion = 0 } = {} } = await stream.ended;
      const usage = { prompt_tokens: prompt, completion_tokens: completion };
      return { tenantId, requestId: stream.requestId, status: stream.status, usage };
    }
    const response = await post(url, key, '/chat', body);
    const { usage } = (await response.json()) as Pick<Answered, 'usage'>;
    const requestId = String(response.headers.get('x-request-id'));
    return { tenantId, requestId, status: response.status, usage };
  }

  it('keep a ledger that equals the provider’s own count of calls and tokens, and what the callers were told', async () => {
    const tenants = await Promise.all(Array.from({ length: TENANTS }, () => fleet.startTenant(CREDITS)));
    const known = new Set((await fleet.providerCounts()).keys());
    const answered: Answered[] = [];
    let next = 0;
    const client = async () => {
      for (let number = next++; number < REQUESTS; number = next++) answered.push(await ask(tenants, number));
    };

    await Promise.all(Array.from({ length: CLIENTS }, client));
    const rests = await Promise.all(tenants.map(({ tenantId }) => fleet.atRest(tenantId)));

    expect(new Set(answered.map(({ status }) => status))).toEqual(new Set([200]));
    const counted = await fleet.providerCounts();
    const rows = await fleet.models.ledger
      .find({ type: 'usage', tenantId: { $in: tenants.map(({ tenantId }) => tenantId) } })
      .lean();
    const tokens = (prompt?: number, completion?: number) => [prompt, completion];
    const byProvider = new Map(
      [...counted]
        .filter(([id]) => !known.has(id))
        .map(([id, count]) => [id, [count.calls, ...tokens(count.prompt_tokens, count.completion_tokens)]]),
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

  it('lose nothing when a worker is killed between requests', async () => {
    const { liveKey, tenantId } = await fleet.startTenant(CREDITS);
    const [doomed] = workers;
    await doomed?.kill();

    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const response = await post(urlOf(index), liveKey, '/chat', chatOf(`Number ${index}`));
        return { status: response.status, requestId: String(response.headers.get('x-request-id')) };
      }),
    );

    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const { requestIds } = await fleet.atRest(tenantId);
    expect(requestIds.sort()).toEqual(answers.map(({ requestId }) => requestId).sort());
  });

  it('have said nothing on stderr and logged no error', async () => {
    for (const process of [...apis, ...workers]) {
      expect(process.stderr()).toBe('');
      expect(process.stdout()).not.toContain('"level":"error"');
    }
    await waitUntil(() => apis.every(({ stdout }) => stdout().includes('listens on')), 'the log');
  });
});
