import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createChance } from '../../support/chance.ts';
import { postLines, resultsOf } from '../../support/batch-client.ts';
import { waitFor, waitUntil } from '../../support/chat.ts';
import { filesOf } from '../../support/compliance.ts';
import { replayLab } from '../../support/replay-lab.ts';
import type { TestTenant } from '../../support/service.ts';
import { openReading } from '../../support/stream-client.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import { linesOf } from '../../support/zip.ts';

const service = useService({ env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
afterEach(() => {
  service.provider.restore();
});

const TOOLS = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }];
const asking = (args: string) => ({
  model: 'mobius',
  messages: [{ role: 'user', content: `simulate-tool=weather${args} simulate-reasoning` }],
  tools: TOOLS,
});
const ASKED = asking('{"city":"Oslo"}');
const MESSAGE = {
  content: null,
  reasoning_content: expect.stringMatching(/^First I look/),
  tool_calls: [{ type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
};

const { ended, replay } = replayLab(service);

const post = ({ key }: TestTenant, headers: Record<string, string> = {}, body: object = ASKED) =>
  request(service.app).post('/platform/v1/chat/completions').auth(key, { type: 'bearer' }).set(headers).send(body);

async function batchOf(tenant: TestTenant): Promise<string> {
  const { body } = await postLines(service, tenant.key, [
    { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: ASKED },
  ]);
  const { id } = body as { id: string };
  const api = apiOf(service, tenant.key);
  await waitUntil(async () => (await api('get', `/batches/${id}`)).body.status === 'completed', 'the batch', 20_000);
  return id;
}

async function lineOf(tenant: TestTenant, batchId: string) {
  const [line] = await resultsOf(service, tenant.key, batchId);
  return line;
}

/** The lines of one file of an export. */
async function exported({ key }: TestTenant, file: string): Promise<object[]> {
  const files = await filesOf(service, key, { scope: 'tenant' });
  return linesOf(files.get(`${file}.jsonl`) ?? Buffer.alloc(0));
}

async function failing<T>(run: () => Promise<T>): Promise<T> {
  service.provider.change({ fail: 'status', status: 503 });
  const result = await run();
  service.provider.restore();
  service.provider.reset();
  return result;
}

interface Completion {
  choices: { message: object }[];
}
const messageIn = (response: unknown) => (response as Completion).choices[0]?.message;

/** Everywhere that an answer may be read, as OpenAI's clients have it. */
const WAYS: Record<string, (tenant: TestTenant) => Promise<object | undefined>> = {
  async 'GET /chat/{id}'(tenant) {
    const { body } = await post(tenant);
    return messageIn((await ended(tenant, (body as { id: string }).id)).body.response);
  },
  async 'a repeat under an Idempotency-Key'(tenant) {
    const first = await post(tenant, { 'Idempotency-Key': 'a' });
    const second = await post(tenant, { 'Idempotency-Key': 'a' });
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(second.body).toEqual(first.body);
    return messageIn(second.body);
  },
  async 'an asynchronous answer'(tenant) {
    const { body } = await post(tenant, { Prefer: 'respond-async' });
    return messageIn((await ended(tenant, (body as { id: string }).id)).body.response);
  },
  async 'a line of a batch'(tenant) {
    return messageIn((await lineOf(tenant, await batchOf(tenant)))?.response);
  },
  async 'a replay after an outage'(tenant) {
    const id = await failing(async () => {
      const { body } = await post(tenant, { Prefer: 'respond-async' });
      const { id } = body as { id: string };
      await ended(tenant, id, 'failed');
      await waitFor(() => service.models.answers.findById(id).lean(), 'its end in MongoDB');
      return id;
    });
    expect(await replay({ request_ids: [id] })).toMatchObject({ replayed: 1 });
    return messageIn((await ended(tenant, id)).body.response);
  },
  async 'an export of answers'(tenant) {
    await post(tenant, { 'Idempotency-Key': 'a' });
    await waitFor(() => service.models.answers.findOne({ tenantId: tenant.tenantId }).lean(), 'the answer');
    const [line] = await exported(tenant, 'answers');
    return line;
  },
  async 'an export of batches'(tenant) {
    await batchOf(tenant);
    const [line] = await exported(tenant, 'batch_lines');
    return line;
  },
};

describe('calls of tools', () => {
  it.each(Object.entries(WAYS))('are whole in %s', async (_way, read) => {
    const tenant = await service.startTenant();

    expect(await read(tenant)).toMatchObject(MESSAGE);
  });

  it('are told to a webhook by their finish reason and usage, without a word of them', async () => {
    const receiver = await startWebhookReceiver();
    const tenant = await service.startTenant();
    await apiOf(service, tenant.key)('post', '/webhooks', { url: receiver.url, events: ['chat.completed'] });

    const { body } = await post(tenant);
    const told = await receiver.next('chat.completed');
    await receiver.close();

    const { usage } = body as { usage: { total_tokens: number } };
    expect(told.body.data).toMatchObject({ finish_reason: 'tool_calls', usage: { total_tokens: usage.total_tokens } });
    expect(told.text).not.toMatch(/Oslo|weather/);
  });

  const STREAMS = 8;
  const CUTS = 26;

  it(`are read byte for byte through ${STREAMS * CUTS} cuts of running streams`, async () => {
    service.provider.change({ chunk_ms: 2 });
    const tenant = await service.startTenant({ tenant: { on_disconnect: 'finish' } });
    const chance = createChance(20_261_128);
    const headers = { Authorization: `Bearer ${tenant.key}` };

    const read = async (number: number) => {
      const args = JSON.stringify({ cities: Array.from({ length: 150 }, (_, index) => `Oslo ${number} 🌧 ${index}`) });
      const posted = new AbortController();
      const begun = await fetch(`${service.url}/platform/v1/chat/completions`, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: JSON.stringify({ ...asking(args), stream: true }),
        signal: posted.signal,
      });
      posted.abort();
      const url = `${service.url}/platform/v1/chat/stream/${begun.headers.get('x-request-id') ?? ''}`;
      const open = (after: number, leaveAt?: { bytes: number }) =>
        openReading(
          { method: 'GET', url, headers: { ...headers, 'Last-Event-ID': String(after) }, body: undefined },
          leaveAt,
        ).ended;
      const events: { seq: number; data: string }[] = [];
      for (let cut = 0; cut <= CUTS; cut += 1) {
        const leaveAt = cut < CUTS ? { bytes: 1 + chance.below(2_000) } : undefined;
        const reading = await open(events.at(-1)?.seq ?? 0, leaveAt);
        expect(reading.end).toBe(leaveAt === undefined ? 'closed' : 'left');
        events.push(...reading.events);
      }
      const whole = await open(0);
      const bytes = (all: readonly { seq: number; data: string }[]) => all.map(({ seq, data }) => `${seq} ${data}\n`);
      expect(bytes(events).join('')).toBe(bytes(whole.events).join(''));
      const { body } = await ended(tenant, begun.headers.get('x-request-id') ?? '');
      expect(messageIn(body.response)).toMatchObject({ tool_calls: [{ function: { arguments: args } }] });
    };
    await Promise.all(Array.from({ length: STREAMS }, (_, number) => read(number)));
  });
});
