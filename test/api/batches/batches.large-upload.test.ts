import { setTimeout as pause } from 'node:timers/promises';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';

import { describe, expect, it } from '@jest/globals';

import { itemOf, itemsOf, ndjsonOf, NDJSON, postBatch, postLines } from '../../support/batch-client.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenantPerTest } from '../../support/use-service.ts';

const MIB = 1024 * 1024;
const LINES = 1_000;
/** A turn that is held up for seconds is noticed all the same; one call after the other takes as much as the upload. */
const BETWEEN_CALLS_MS = 100;
const service = useService({ workers: 0 });
const tenant = useTenantPerTest(service);

const lines = { 'Content-Type': NDJSON };
/** The best quality, which is the default, takes a second for a text of this size. */
const quickBrotli = (text: Buffer) => brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });

const imageOf = (bytes: number) => {
  const url = `data:image/png;base64,${'A'.repeat(bytes)}`;
  return { role: 'user', content: [{ type: 'image_url', image_url: { url } }] };
};

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
        await pause(BETWEEN_CALLS_MS);
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
    ['br', quickBrotli],
  ])('a large upload may be compressed: %s', async (encoding, compress) => {
    const body = compress(Buffer.from(ndjsonOf(itemsOf(LINES, 'é'.repeat(100)))));
    const response = await postBatch(service, tenant.key, body, { ...lines, 'Content-Encoding': encoding });

    expect([response.status, response.body.request_counts]).toEqual([202, { total: LINES, completed: 0, failed: 0 }]);
  });

  it.each([
    ['a request may be', () => itemOf('long', { metadata: 'x'.repeat(20 * MIB) })],
    [
      'MongoDB can store',
      () => ({ ...itemOf('long', { messages: [imageOf(16 * MIB)] }), url: '/v1/chat/completions' }),
    ],
  ])('has a line that is longer than %s as a bad line', async (_what, longItem) => {
    const { status, body } = await postLines(service, tenant.key, [longItem(), ...itemsOf(2)]);

    expect([status, body.request_counts]).toEqual([202, { total: 3, completed: 0, failed: 1 }]);
  });
});
