import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import {
  itemOf,
  itemsOf,
  ndjsonOf,
  NDJSON,
  openPost,
  postBatch,
  postLines,
  storedOf,
} from '../support/batch-client.ts';
import { refusalOf } from '../support/refusal.ts';
import { startService } from '../support/service.ts';
import type { TestService, TestTenant } from '../support/service.ts';
import { apiOf } from '../support/tenant-api.ts';
import { waitFor } from '../support/wait-for.ts';

const MIB = 1024 * 1024;
/** More lines than are in memory at a time: some of them are stored when the fault is found. */
const MANY = 1_000;

let service: TestService;
let tenant: TestTenant;
beforeAll(async () => {
  service = await startService({ workers: 0 });
});
afterAll(() => service.close());
beforeEach(async () => {
  tenant = await service.startTenant();
});

const lines = { 'Content-Type': NDJSON };
const inline = (requests: unknown, more: object = {}) => JSON.stringify({ requests, ...more });

describe('a batch that is wrong as a whole', () => {
  it.each<[string, string | Buffer, Record<string, string>, object, string]>([
    ['no body', '', {}, { status: 400 }, 'empty'],
    ['no JSON', '{"requests":[', {}, { status: 400 }, 'JSON'],
    ['an array', '[]', {}, { status: 400 }, '`requests`'],
    ['no requests', '{}', {}, { status: 400, param: 'requests' }, 'required'],
    ['requests that are no array', inline({}), {}, { status: 400, param: 'requests' }, 'array'],
    ['an empty array', inline([]), {}, { status: 400, param: 'requests' }, 'at least one'],
    ['no lines', '', lines, { status: 400, param: 'requests' }, 'at least one'],
    ['blank lines alone', '\n \n\r\n', lines, { status: 400, param: 'requests' }, 'at least one'],
    ['another field', inline(itemsOf(1), { model: 'x' }), {}, { status: 400, param: 'model' }, '`metadata`'],
    ['metadata that is text', inline(itemsOf(1), { metadata: 'x' }), {}, { status: 400, param: 'metadata' }, 'object'],
    [
      'metadata too large',
      inline(itemsOf(1), { metadata: { a: 'x'.repeat(17_000) } }),
      {},
      { status: 400, param: 'metadata' },
      '16384',
    ],
    [
      'metadata too deep',
      inline(itemsOf(MANY), { metadata: { a: { b: { c: { d: { e: {} } } } } } }),
      {},
      { status: 400, param: 'metadata' },
      '5 levels',
    ],
    [
      'metadata that reaches a prototype',
      '{"metadata":{"__proto__":{}},"requests":[1]}',
      {},
      { status: 400, param: 'metadata' },
      '__proto__',
    ],
    ['a cut at its end', inline(itemsOf(MANY)).slice(0, -1), {}, { status: 400 }, 'JSON'],
    [
      'a request that is no JSON',
      `{"requests":[${ndjsonOf(itemsOf(MANY)).replaceAll('\n', ',')},{a}]}`,
      {},
      { status: 400 },
      '`requests[1000]`',
    ],
    [
      'bytes that are not UTF-8',
      Buffer.concat([Buffer.from(`${ndjsonOf(itemsOf(MANY))}\n"`), Buffer.from([0xff]), Buffer.from('"')]),
      lines,
      { status: 400 },
      'Line 1001',
    ],
    [
      'a custom_id twice',
      inline([...itemsOf(MANY), itemOf('line-3')]),
      {},
      { status: 400, param: 'requests[1000].custom_id' },
      '"line-3" is there twice: `requests[3]` and `requests[1000]`',
    ],
    [
      'a custom_id twice, in lines',
      `\n${ndjsonOf([...itemsOf(MANY), itemOf('line-3')])}`,
      lines,
      { status: 400, param: 'custom_id' },
      '"line-3" is there twice: Line 5 and Line 1002',
    ],
    [
      'a custom_id twice, once of a bad request',
      ndjsonOf([{ custom_id: 'a' }, itemOf('a')]),
      lines,
      { status: 400, param: 'custom_id' },
      'Line 1 and Line 2',
    ],
    ['10,001 requests', inline(Array(10_001).fill(7)), {}, { status: 400, param: 'requests' }, '10000'],
    ['10,001 lines', Array(10_001).fill('x').join('\n'), lines, { status: 400, param: 'requests' }, '10000'],
    ['text', 'Hi', { 'Content-Type': 'text/plain' }, { status: 415, code: 'unsupported_media_type' }, NDJSON],
    ['JSON lines', '{}', { 'Content-Type': 'application/jsonl' }, { status: 415 }, NDJSON],
    ['UTF-16', '{}', { 'Content-Type': `${NDJSON}; charset=utf-16` }, { status: 415 }, 'UTF-8'],
    ['an encoding that is not known', '{}', { 'Content-Encoding': 'zstd' }, { status: 415 }, 'gzip, deflate, br'],
    ['gzip that is none', ndjsonOf(itemsOf(3)), { ...lines, 'Content-Encoding': 'gzip' }, { status: 400 }, 'Encoding'],
    [
      'gzip that is cut',
      gzipSync(ndjsonOf(itemsOf(MANY))).subarray(0, -8),
      { ...lines, 'Content-Encoding': 'gzip' },
      { status: 400 },
      'Encoding',
    ],
    [
      'a bad Idempotency-Key',
      '{}',
      { 'Idempotency-Key': 'x'.repeat(256) },
      { status: 400, param: 'Idempotency-Key' },
      '255',
    ],
  ])('is refused, and nothing of it stays: %s', async (_what, body, headers, refusal, rule) => {
    const refused = refusalOf(await postBatch(service, tenant.key, body, headers));

    expect(refused).toMatchObject({
      code: expect.stringMatching(/^(invalid_request|unsupported_media_type)$/),
      type: 'invalid_request_error',
      ...refusal,
    });
    expect(refused.message).toContain(rule);
    expect(await storedOf(service, tenant)).toEqual([0, 0]);
  });

  it.each([
    ['said', (body: Buffer) => postBatch(service, tenant.key, body, lines).then(refusalOf)],
    [
      'compressed',
      (body: Buffer) =>
        postBatch(service, tenant.key, gzipSync(body), { ...lines, 'Content-Encoding': 'gzip' }).then(refusalOf),
    ],
  ])('is refused above 50 MiB: %s', async (_what, send) => {
    const body = Buffer.concat([Buffer.from(`${ndjsonOf(itemsOf(MANY))}\n`), Buffer.alloc(BATCH_LIMITS.bytesMax, ' ')]);

    const refused = await send(body);

    expect(refused).toMatchObject({ status: 413, code: 'payload_too_large' });
    expect(refused.message).toContain(String(BATCH_LIMITS.bytesMax));
    expect(await storedOf(service, tenant)).toEqual([0, 0]);
  });

  it('is refused above 50 MiB where its length is not said, while the client still sends', async () => {
    const call = openPost(service, tenant.key);
    const answered = new Promise<number | undefined>((resolve) => {
      call.on('response', (res) => {
        res.resume();
        resolve(res.statusCode);
      });
    });
    const part = Buffer.alloc(MIB, ' ');
    const state = { isAnswered: false };
    void answered.then(() => (state.isAnswered = true));
    let sent = 0;
    // Far more than the limit, if nobody says anything.
    for (; sent < 200 && !state.isAnswered; sent += 1) await new Promise((resolve) => call.write(part, resolve));

    expect(await answered).toBe(413);
    expect(sent).toBeLessThan(200);
    call.destroy();
    expect(await storedOf(service, tenant)).toEqual([0, 0]);
  });
});

describe('an upload that breaks off', () => {
  it.each(['plain', 'gzip'])('leaves nothing: %s', async (encoding) => {
    const call = openPost(service, tenant.key);
    if (encoding === 'gzip') call.setHeader('Content-Encoding', 'gzip');
    const body = Buffer.from(`${ndjsonOf(itemsOf(5_000))}\n`);
    call.write(encoding === 'gzip' ? gzipSync(body).subarray(0, -100) : body);
    await waitFor(async () => {
      const [, count] = await storedOf(service, tenant);
      return count >= MANY ? true : undefined;
    }, 'the first lines to be stored');
    const shown = await apiOf(service, tenant.key)('get', '/batches');
    expect(shown.body.data).toEqual([
      expect.objectContaining({ status: 'validating', request_counts: { total: 0, completed: 0, failed: 0 } }),
    ]);

    call.destroy();

    await waitFor(async () => {
      const stored = await storedOf(service, tenant);
      return stored.every((count) => count === 0) ? true : undefined;
    }, 'what was stored to be taken away');
  });
});

describe('an upload that is cancelled before it has arrived', () => {
  it('becomes a batch that is cancelling', async () => {
    const api = apiOf(service, tenant.key);
    const call = openPost(service, tenant.key);
    const answer = new Promise<string>((resolve) => {
      call.on('response', (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (part: string) => (text += part));
        res.on('end', () => {
          resolve(text);
        });
      });
    });
    call.write(`${ndjsonOf(itemsOf(MANY))}\n`);
    const id = await waitFor(async () => {
      const { body } = await api('get', '/batches');
      return (body.data as { id: string }[])[0]?.id;
    }, 'the batch to be shown');

    const asked = await api('post', `/batches/${id}/cancel`);
    expect([asked.status, asked.body.status]).toEqual([200, 'cancelling']);
    call.end();

    const batch = JSON.parse(await answer) as Record<string, unknown>;
    expect(batch).toMatchObject({ id, status: 'cancelling', cancelled_at: asked.body.cancelled_at });
    expect(batch['request_counts']).toEqual({ total: MANY, completed: 0, failed: 0 });
  });
});

describe('a large upload', () => {
  it('of 10,000 lines is stored whole, in its order', async () => {
    const { status, body } = await postLines(service, tenant.key, itemsOf(10_000));

    expect([status, body.request_counts]).toEqual([202, { total: 10_000, completed: 0, failed: 0 }]);
    const rows = await service.models.batchLines
      .find({ batchId: String(body.id) }, { index: 1, customId: 1 })
      .sort({ index: 1 })
      .lean();
    expect(rows.map(({ index, customId }) => [index, customId])).toEqual(
      Array.from({ length: 10_000 }, (_, index) => [index, `line-${index}`]),
    );
  }, 60_000);

  it.each([
    ['lines', NDJSON, (texts: string) => texts],
    ['a JSON body', 'application/json', (texts: string) => `{"requests":[${texts.replaceAll('\n', ',')}]}`],
  ])(
    'of 50 MB as %s takes little memory, and lets others have their turn',
    async (_what, type, bodyOf) => {
      const body = Buffer.from(bodyOf(ndjsonOf(itemsOf(3_300, 'x'.repeat(15_000)))));
      expect(body.length).toBeGreaterThan(48_000_000);
      const inUse = () => {
        const { heapUsed, external } = process.memoryUsage();
        return heapUsed + external;
      };
      const before = inUse();
      let peak = before;
      const probe = setInterval(() => (peak = Math.max(peak, inUse())), 10);
      const answer = postBatch(service, tenant.key, body, { 'Content-Type': type });
      const done = answer.then((response) => response);
      let slowest = 0;
      const state = { isDone: false };
      void done.finally(() => (state.isDone = true));
      while (!state.isDone) {
        const start = performance.now();
        await apiOf(service, tenant.key)('get', '/models');
        slowest = Math.max(slowest, performance.now() - start);
      }
      clearInterval(probe);

      expect((await done).body.request_counts).toMatchObject({ total: 3_300, failed: 0 });
      // Coarse, for a machine that does other things: a body that is parsed at once holds several times its size, and
      // everybody else up for as long.
      expect(peak - before).toBeLessThan(200 * MIB);
      expect(slowest).toBeLessThan(3_000);
    },
    120_000,
  );

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('may be compressed: %s', async (encoding, compress) => {
    const body = compress(Buffer.from(ndjsonOf(itemsOf(MANY, 'é'.repeat(100)))));
    const response = await postBatch(service, tenant.key, body, { ...lines, 'Content-Encoding': encoding });

    expect([response.status, response.body.request_counts]).toEqual([202, { total: MANY, completed: 0, failed: 0 }]);
  });

  it('has a line that is longer than a request may be as a bad line', async () => {
    const long = JSON.stringify(itemOf('long', { metadata: 'x'.repeat(20 * MIB) }));
    const response = await postBatch(service, tenant.key, `${long}\n${ndjsonOf(itemsOf(2))}`, lines);

    expect([response.status, response.body.request_counts]).toEqual([202, { total: 3, completed: 0, failed: 1 }]);
  });
});
