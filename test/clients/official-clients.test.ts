import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, waitUntil } from '../support/chat.ts';
import { openFleet } from '../support/fleet.ts';
import type { Fleet } from '../support/fleet.ts';
import { post } from '../support/stream-client.ts';
import { startClient } from './start-client.ts';
import type { Ask, Client, Outcome } from './start-client.ts';

interface Tried {
  name: string;
  /** In this folder. */
  program: string;
  /** Complete answers besides streams. */
  complete?: true;
  json?: true;
  /** Calls tools, sends images, and reads answers by a schema. */
  beyond?: true;
  embeds?: true;
  /** Sends a try that timed out again, and says that it is one (`X-Stainless-Retry-Count`). */
  countsTries?: true;
}

/** What the clients of whole SDKs can do. */
const WHOLE_SDK = { complete: true, beyond: true } as const;
const EMBEDDING_SDK = { ...WHOLE_SDK, json: true, embeds: true } as const;
const CLIENTS: Tried[] = [
  { name: 'openai for JavaScript', program: 'openai.mjs', ...EMBEDDING_SDK, countsTries: true },
  { name: 'openai for Python', program: 'openai_client.py', ...EMBEDDING_SDK, countsTries: true },
  { name: 'the AI SDK, openai-compatible', program: 'ai-sdk.mjs compatible', ...EMBEDDING_SDK },
  { name: 'the AI SDK, openai.chat()', program: 'ai-sdk.mjs openai', ...EMBEDDING_SDK },
  { name: 'LangChain for JavaScript', program: 'langchain.mjs', ...EMBEDDING_SDK },
  { name: 'LangChain for Python', program: 'langchain_client.py', ...EMBEDDING_SDK, countsTries: true },
  { name: 'LiteLLM', program: 'litellm_client.py', ...EMBEDDING_SDK, countsTries: true },
  { name: 'OpenAI Agents', program: 'agents_client.py', ...WHOLE_SDK },
  { name: 'Pydantic AI', program: 'pydantic_ai_client.py', ...WHOLE_SDK },
  { name: 'httpx-sse', program: 'httpx_sse_client.py' },
  { name: 'eventsource-parser', program: 'eventsource-parser.mjs' },
  { name: 'eventsource for Node.js', program: 'eventsource.mjs' },
  // set-up.ts says so where there is no browser.
  ...(process.env['TEST_CLIENTS_BROWSER'] === undefined
    ? []
    : [{ name: 'EventSource in Chromium', program: 'browser.mjs' }]),
];
const COMPLETE = CLIENTS.filter(({ complete }) => complete);
const JSON_MODE = CLIENTS.filter(({ json }) => json);
const BEYOND_TEXT = CLIENTS.filter(({ beyond }) => beyond);
const EMBEDDING = CLIENTS.filter(({ embeds }) => embeds);
const COUNTS_TRIES = CLIENTS.filter(({ countsTries }) => countsTries);

const CONTENT = 'Rivers run to the sea, and every one of them takes the long way around the hills.';
/** The simulated provider calls the tool, then says what it heard (docs/guide/quick-start.md). */
const MARKED = 'What is it like in Oslo? simulate-tool=weather{"city":"Oslo"}';
/** Longer than three pings, of which one comes every 15 s (docs/spec.md#stream). */
const LONG_MS = 46_000;
const LONG_MODEL = `sim?echo=1&fail=none&chunks=11&chunk_ms=${LONG_MS / 10}`;
const START_TIMEOUT_MS = 10 * 60_000;

interface Heard extends Outcome {
  ms: number;
}
type Scenario = Ask['call'] | 'json' | 'left' | 'broken' | 'crowded' | 'unavailable' | 'slow' | 'long';

describe('the official clients', () => {
  let fleet: Fleet;
  let tenant: Awaited<ReturnType<Fleet['startTenant']>>;
  const slowTenants = new Map<string, string>();
  const running = new Map<string, Client>();
  const heard = new Map<string, Heard>();

  async function ask(name: string, scenario: Scenario, ask: Partial<Ask> = {}): Promise<void> {
    const startedAt = performance.now();
    const whole: Ask = { call: 'stream', apiKey: tenant.liveKey, model: 'mobius', content: CONTENT, ...ask };
    const outcome = await running.get(name)?.ask(whole);
    if (outcome === undefined) throw new Error(`${name} is not running`);
    heard.set(`${name} ${scenario}`, { ...outcome, ms: performance.now() - startedAt });
  }
  const askAll = (clients: readonly { name: string }[], scenario: Scenario, asked: Partial<Ask> = {}) =>
    Promise.all(clients.map(({ name }) => ask(name, scenario, asked)));

  /** A key that has had its one request of this minute. */
  async function crowdedKey(): Promise<string> {
    const { liveKey } = await fleet.startTenant(1_000, { rpm: 1 });
    await (await post(fleet.api.url, liveKey, '/chat', chatOf('Hello'))).text();
    return liveKey;
  }

  /** With a time limit that the answer exceeds, as a tenant of its own. */
  async function askSlow(name: string): Promise<void> {
    const { tenantId, liveKey } = await fleet.startTenant(1_000);
    slowTenants.set(name, tenantId);
    await ask(name, 'slow', { call: 'complete', apiKey: liveKey, timeoutMs: 1_500 });
  }

  async function refusedAsUnavailable(): Promise<number> {
    const response = await fetch(`${fleet.api.adminUrl}/metrics`, {
      headers: { Authorization: `Bearer ${String(fleet.settings['ADMIN_TOKEN'])}` },
    });
    const counts = [...(await response.text()).matchAll(/^parley_http_requests_total\{.*status="503".*\} (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  beforeAll(async () => {
    fleet = await openFleet();
    await fleet.startWorker();
    const provider = { kind: 'simulated', base_url: `${fleet.providerUrl}/v1`, breaker: { min_attempts: 1_000_000 } };
    await fleet.admin('PUT', '/providers/simulated', provider);
    const route = (tier: string, model: string) =>
      fleet.admin('PUT', `/tiers/${tier}`, {
        rates: { prompt: 1, completion: tier === 'embedding' ? 0 : 1 },
        targets: [{ provider: 'simulated', model, context_window: 128_000 }],
      });
    await Promise.all([route('oloid', LONG_MODEL), route('embedding', 'sim')]);
    tenant = await fleet.startTenant(1_000_000);
    for (const { name, program } of CLIENTS) running.set(name, startClient(program, `${fleet.api.url}/platform/v1`));

    // The slow ones begin first and run beside the others.
    const slow = [
      askAll(CLIENTS, 'long', { model: 'oloid' }),
      ...COMPLETE.map(async ({ name }) => ask(name, 'crowded', { call: 'complete', apiKey: await crowdedKey() })),
    ];
    const change = (settings: object) => fleet.changeProvider({ echo: true, fail: 'none', chunk_ms: 0, ...settings });
    await change({ chunks: 10 });
    await Promise.all([
      askAll(COMPLETE, 'complete', { call: 'complete' }),
      askAll(JSON_MODE, 'json', { call: 'json', content: `${CONTENT} Answer in JSON.` }),
      askAll(CLIENTS, 'stream'),
    ]);
    await Promise.all([
      askAll(BEYOND_TEXT, 'tools', { call: 'tools', content: MARKED }),
      askAll(BEYOND_TEXT, 'toolStream', { call: 'toolStream', content: MARKED }),
      askAll(BEYOND_TEXT, 'schema', { call: 'schema' }),
      askAll(BEYOND_TEXT, 'image', { call: 'image' }),
      askAll(EMBEDDING, 'embed', { call: 'embed', model: 'embedding' }),
    ]);
    await change({ chunk_ms: 200 });
    await askAll(CLIENTS, 'left', { leaves: true });
    await change({ fail: 'truncate', fail_after: 5 });
    await askAll(CLIENTS, 'broken');
    await change({ fail: 'status', status: 503 });
    const before = await refusedAsUnavailable();
    const unavailable = askAll(COMPLETE, 'unavailable', { call: 'complete' });
    await waitUntil(async () => (await refusedAsUnavailable()) >= before + COMPLETE.length, 'refusals');
    await change({});
    await unavailable;
    // The answer is there during the third try at the latest, and after the first.
    await change({ first_token_ms: 4_000 });
    await Promise.all([...COUNTS_TRIES.map(({ name }) => askSlow(name)), ...slow]);
  }, START_TIMEOUT_MS);
  afterAll(async () => {
    await Promise.all([...running.values()].map((client) => client.stop()));
    await fleet.close();
  });

  const WHOLE = { text: CONTENT, finish: 'stop', ms: expect.any(Number) };
  function of(name: string, scenario: Scenario): Heard {
    const outcome = heard.get(`${name} ${scenario}`);
    if (outcome === undefined) throw new Error(`${name} was not asked for ${scenario}`);
    return outcome;
  }

  describe.each(CLIENTS)('$name', ({ name }) => {
    it('reads a stream', () => {
      expect(of(name, 'stream')).toEqual(WHOLE);
    });

    it('reads a stream of three pings to its end', () => {
      expect(of(name, 'long')).toEqual(WHOLE);
      expect(of(name, 'long').ms).toBeGreaterThan(LONG_MS);
    });

    it('may leave a stream after its first text', () => {
      const { text, ms } = of(name, 'left');
      expect(CONTENT.startsWith(text)).toBe(true);
      expect(text.length).toBeLessThan(CONTENT.length);
      expect(ms).toBeLessThan(2_000);
    });

    it('has the text so far and an error where a stream fails midway', () => {
      const { text, error } = of(name, 'broken');
      expect(text).not.toBe('');
      expect(CONTENT.startsWith(text)).toBe(true);
      expect(error?.message).toContain('not available at the moment');
    });
  });

  describe.each(COMPLETE)('$name', ({ name }) => {
    it('gets a complete answer', () => {
      expect(of(name, 'complete')).toEqual(WHOLE);
    });

    it('waits as long as a refusal for its limit says, and then succeeds', () => {
      expect(of(name, 'crowded')).toEqual(WHOLE);
      expect(of(name, 'crowded').ms).toBeGreaterThan(30_000);
    });

    it('tries again by itself where no provider was available, and succeeds', () => {
      expect(of(name, 'unavailable')).toEqual(WHOLE);
    });
  });

  describe.each(BEYOND_TEXT)('$name', ({ name }) => {
    it.each(['tools', 'toolStream'] as const)('has its tool called and its result read: %s', (scenario) => {
      expect(of(name, scenario)).toEqual({ ...WHOLE, text: 'The tool weather says: “Oslo: 7 degrees”' });
    });

    it('gets an object of its schema', () => {
      expect(JSON.parse(of(name, 'schema').text)).toEqual({ city: 'city', degrees: 1, wind: 'calm' });
    });

    it('sends an image', () => {
      expect(of(name, 'image')).toEqual({ ...WHOLE, text: `I see 1 image. ${CONTENT}` });
    });
  });

  describe.each(EMBEDDING)('$name', ({ name }) => {
    it('gets an embedding', () => {
      const vector = JSON.parse(of(name, 'embed').text) as number[];
      expect(vector).toHaveLength(1_536);
      expect(Math.hypot(...vector)).toBeCloseTo(1);
    });
  });

  describe.each(JSON_MODE)('$name', ({ name }) => {
    it('gets JSON in JSON mode', () => {
      const { text } = of(name, 'json');
      expect(JSON.parse(text)).toHaveProperty('answer');
    });
  });

  describe.each(COUNTS_TRIES)('$name', ({ name }) => {
    it('gets the answer of its first try where that timed out, made and charged once', async () => {
      expect(of(name, 'slow')).toEqual(WHOLE);
      expect(of(name, 'slow').ms).toBeGreaterThan(4_000);
      const { requestIds } = await fleet.atRest(slowTenants.get(name) ?? '');
      expect(requestIds).toHaveLength(1);
      const counts = await fleet.providerCounts();
      expect(counts.get(requestIds[0] ?? '')?.calls).toBe(1);
    });
  });

  it('are charged once for each answer', async () => {
    const { requestIds } = await fleet.atRest(tenant.tenantId);
    const text = 4 * CLIENTS.length + 2 * COMPLETE.length + JSON_MODE.length;
    // A round trip of a tool is two requests.
    expect(requestIds).toHaveLength(text + 6 * BEYOND_TEXT.length + EMBEDDING.length);
  });
});
