import { connect } from 'node:net';
import type { Socket } from 'node:net';

import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createBatchRepository } from '../../../shared/mongo/batches/batch-repository.ts';
import { createBatchWorkRepository } from '../../../shared/mongo/batches/batch-work-repository.ts';
import { createAnswerCache } from '../../../shared/requests/answers.ts';
import { chatOf, errorOf, postChat, requestIdOf } from '../../support/chat.ts';
import { itemsOf, postLines, resultsOf } from '../../support/batch-client.ts';
import { endLines, ran, STOP } from '../../support/ended-lines.ts';
import type { Ended } from '../../support/ended-lines.ts';
import { expectUniformHeaders } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenantPerTest } from '../../support/use-service.ts';

const MIB = 1024 * 1024;
const DRAIN_MS = 1_500;
// Nobody runs the batches: each test ends their lines itself.
const service = useService({ workers: 0, relayTimes: { drainMs: DRAIN_MS } });
const tenant = useTenantPerTest(service);

async function makeBatch(count: number, key = tenant.key): Promise<string> {
  return String((await postLines(service, key, itemsOf(count))).body.id);
}

const end = (batchId: string, ...ends: Ended[]) => endLines(service, tenant.tenantId, batchId, ends);

const results = (batchId: string) => resultsOf(service, tenant.key, batchId);

describe('GET /batches/{id}/results', () => {
  it('has what has ended, in the order of the lines, while the batch runs', async () => {
    const id = await makeBatch(250);
    expect(await results(id)).toEqual([]);

    await end(id, ran(249, ['last']), ran(100, ['more']), ran(3, ['He', 'llo\n"']), ran(99, []));

    const lines = await results(id);
    expect(lines.map(({ custom_id: name }) => name)).toEqual(['line-3', 'line-99', 'line-100', 'line-249']);
    expect(lines[0]).toEqual({
      custom_id: 'line-3',
      request_id: expect.stringMatching(/^req_/),
      response: {
        id: lines[0]?.request_id,
        object: 'chat.completion',
        created: 1_700_000_000,
        model: 'oloid',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hello\n"' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      },
    });
  });

  it('is NDJSON with the headers of every answer', async () => {
    const id = await makeBatch(1);
    const response = await request(service.app)
      .get(`/platform/v1/batches/${id}/results`)
      .auth(tenant.key, { type: 'bearer' });

    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toBe('application/x-ndjson');
    expectUniformHeaders(response);
  });

  it('GET /batches/{id}/results gives the caller its metadata back', async () => {
    const id = await makeBatch(1);
    await end(id, ran(0, ['Hi'], STOP, { metadata: '{"a":["b"]}' }));

    expect((await results(id))[0]?.response).toMatchObject({ metadata: { a: ['b'] } });
  });

  it.each<[string, Ended, object]>([
    [
      'a failure after text',
      ran(0, ['Hal'], { ...STOP, finishReason: 'error', error: { code: 'timeout', message: 'It took too long.' } }),
      { code: 'timeout', type: 'timeout_error', message: 'It took too long.' },
    ],
    ['a cancel before text', ran(0, [], { ...STOP, finishReason: 'cancelled' }), { code: 'conflict' }],
    [
      'an end without a run',
      { index: 0, status: 'failed', error: { code: 'budget_exceeded', message: 'No budget.' } },
      { code: 'budget_exceeded', type: 'billing_error' },
    ],
  ])('GET /batches/{id}/results has an error in place of a response: %s', async (_what, ended, error) => {
    const id = await makeBatch(1);
    await end(id, ended);

    const [line] = await results(id);
    expect(Object.keys(line ?? {})).toEqual(['custom_id', 'request_id', 'error']);
    expect(line?.error).toMatchObject({ ...error, request_id: line?.request_id });
  });

  it('has the text of an answer that was cancelled within it', async () => {
    const id = await makeBatch(1);
    await end(id, ran(0, ['Ha'], { ...STOP, finishReason: 'cancelled' }));

    expect((await results(id))[0]?.response).toMatchObject({ choices: [{ finish_reason: 'cancelled' }] });
  });

  it('has the response that the request’s look-up has', async () => {
    const worker = await service.startWorker();
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi', { metadata: { a: 1 } })));
    await worker.close();
    const answer = await createAnswerCache(service.redis, service.keyspace).read(0, requestId);
    if (answer === undefined) throw new Error('The request has not ended');
    const id = await makeBatch(1);
    const work = createBatchWorkRepository(service.mongo);
    const [line] = await work.waiting(tenant.tenantId, id, -1, 1);
    if (line === undefined) throw new Error('The batch has no line');
    await work.renumber(tenant.tenantId, id, line, { requestId });

    await end(id, { index: 0, status: 'completed', answer });

    const shown = await apiOf(service, tenant.key)('get', `/chat/${requestId}`);
    expect((await results(id))[0]).toEqual({
      custom_id: 'line-0',
      request_id: requestId,
      response: shown.body.response,
    });
  });
});

it('results are read by their bytes, not by their number, and come all the same', async () => {
  const id = await makeBatch(20);
  for (let index = 0; index < 20; index += 1) await end(id, ran(index, [`${'x'.repeat(5 * MIB)}${index}`]));

  const page = await createBatchRepository(service.mongo).results(tenant.tenantId, id, -1, 20);

  expect(JSON.stringify(page).length).toBeLessThan(25 * MIB);
  expect((await results(id)).map(({ custom_id: name }) => name)).toEqual(itemsOf(20).map((item) => item.custom_id));
}, 60_000);

describe('a reader of results', () => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  /** A batch whose results are far more than the sockets of both ends take, and the key that reads them. */
  let large: { id: string; key: string };
  beforeAll(async () => {
    const made = await service.startTenant();
    const id = await makeBatch(40, made.key);
    for (let first = 0; first < 40; first += 8) {
      const ends = Array.from({ length: 8 }, (_, index) => ran(first + index, ['x'.repeat(MIB / 2)]));
      await endLines(service, made.tenantId, id, ends);
    }
    large = { id, key: made.key };
  }, 60_000);

  /** Asks for results and reads nothing of them. */
  function ask(): Socket {
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.pause();
    const head = `GET /platform/v1/batches/${large.id}/results HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n`;
    socket.write(`${head}Authorization: Bearer ${large.key}\r\n\r\n`);
    return socket;
  }

  it('a reader of results that leaves early is no fault', async () => {
    const socket = ask();
    await new Promise((resolve) => {
      socket.once('data', resolve);
      socket.resume();
    });
    socket.destroy();

    expect((await apiOf(service, tenant.key)('get', '/batches')).status).toBe(200);
    expect(service.log.errors()).toEqual([]);
  });
});

describe('a batch with a line that cannot be read', () => {
  async function makeUnreadable(): Promise<string> {
    const id = await makeBatch(1);
    await end(id, ran(0, ['Hi']));
    await service.models.batchLines.updateOne({ batchId: id }, { $set: { entries: [] } });
    return `/batches/${id}/results`;
  }

  it('has an error in place of results, which is JSON and says so', async () => {
    const response = await apiOf(service, tenant.key)('get', await makeUnreadable());

    expect(response.status).toBe(500);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(errorOf(response)).toMatchObject({ code: expect.any(String) });
  });

  it('is all the same to whoever asks for the head of its results: no line is read', async () => {
    const path = await makeUnreadable();

    const head = await request(service.app).head(`/platform/v1${path}`).auth(tenant.key, { type: 'bearer' });

    expect([head.status, head.headers['content-type']]).toEqual([200, 'application/x-ndjson']);
  });
});
