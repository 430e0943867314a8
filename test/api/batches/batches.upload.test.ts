import { gzipSync } from 'node:zlib';

import { describe, expect, it } from '@jest/globals';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { itemOf, itemsOf, ndjsonOf, NDJSON, openPost, postBatch, storedOf } from '../../support/batch-client.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenantPerTest } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const MIB = 1024 * 1024;
const MANY = 450;
/** More than an upload holds in memory: some are stored before the last one has arrived. */
const LARGE = ndjsonOf(itemsOf(2 * MANY, 'x'.repeat(8_000)));
const STORED_EARLY = 400;
const service = useService({ workers: 0 });
const tenant = useTenantPerTest(service);

const lines = { 'Content-Type': NDJSON };
const inline = (requests: unknown, more: object = {}) => JSON.stringify({ requests, ...more });

describe('a batch that is wrong as a whole', () => {
  it.each<[string, string | Buffer, Record<string, string>, object, string]>([
    ['no body', '', {}, { status: 400 }, 'empty'],
    ['no JSON', '{"requests":[', {}, { status: 400 }, 'JSON'],
    ['an empty array', inline([]), {}, { status: 400, param: 'requests' }, 'at least one'],
    ['no lines', '', lines, { status: 400, param: 'requests' }, 'at least one'],
    ['blank lines alone', '\n \n\r\n', lines, { status: 400, param: 'requests' }, 'at least one'],
    [
      'metadata too large',
      inline(itemsOf(1), { metadata: { a: 'x'.repeat(17_000) } }),
      {},
      { status: 400, param: 'metadata' },
      '16384',
    ],
    ['a cut at its end', inline(itemsOf(MANY)).slice(0, -1), {}, { status: 400 }, 'JSON'],
    [
      'bytes that are not UTF-8',
      Buffer.concat([Buffer.from(`${ndjsonOf(itemsOf(MANY))}\n"`), Buffer.from([0xff]), Buffer.from('"')]),
      lines,
      { status: 400 },
      `Line ${MANY + 1}`,
    ],
    [
      'a custom_id twice',
      inline([...itemsOf(MANY), itemOf('line-3')]),
      {},
      { status: 400, param: `requests[${MANY}].custom_id` },
      `"line-3" is there twice: \`requests[3]\` and \`requests[${MANY}]\``,
    ],
    [
      'a custom_id twice, in lines',
      `\n${ndjsonOf([...itemsOf(MANY), itemOf('line-3')])}`,
      lines,
      { status: 400, param: 'custom_id' },
      `"line-3" is there twice: Line 5 and Line ${MANY + 2}`,
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
  ])(
    'a batch that is wrong as a whole is refused, and nothing of it stays: %s',
    async (_what, body, headers, refusal, rule) => {
      const refused = refusalOf(await postBatch(service, tenant.key, body, headers));

      expect(refused).toMatchObject({
        code: expect.stringMatching(/^(invalid_request|unsupported_media_type)$/),
        type: 'invalid_request_error',
        ...refusal,
      });
      expect(refused.message).toContain(rule);
      expect(await storedOf(service, tenant)).toEqual([0, 0]);
    },
  );

  it.each(['application/jsonl', 'application/ndjson', 'application/x-jsonlines', 'Application/JSONL; charset=utf-8'])(
    'takes lines by their other names, too: %s',
    async (type) => {
      // The key's calls a minute are counted for itself.
      const own = await service.startTenant();
      const response = await postBatch(service, own.key, `${JSON.stringify(itemOf('a'))}\n`, { 'Content-Type': type });

      expect(response.body).toMatchObject({ object: 'batch', request_counts: { total: 1 } });
    },
  );

  it.each([
    ['said', (body: Buffer) => postBatch(service, tenant.key, body, lines).then(refusalOf)],
    [
      'compressed',
      (body: Buffer) =>
        postBatch(service, tenant.key, gzipSync(body), { ...lines, 'Content-Encoding': 'gzip' }).then(refusalOf),
    ],
  ])('a batch that is wrong as a whole is refused above 50 MiB: %s', async (_what, send) => {
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
  it.each(['plain', 'gzip'])('an upload that breaks off leaves nothing: %s', async (encoding) => {
    const call = openPost(service, tenant.key);
    if (encoding === 'gzip') call.setHeader('Content-Encoding', 'gzip');
    // Compressed, the cut end takes some lines along.
    const body = Buffer.from(`${LARGE}\n`);
    call.write(encoding === 'gzip' ? gzipSync(body).subarray(0, -100) : body);
    await waitFor(async () => {
      const [, count] = await storedOf(service, tenant);
      return count >= STORED_EARLY ? true : undefined;
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
  it('an upload that is cancelled before it has arrived becomes a batch that is cancelling', async () => {
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
    call.write(`${LARGE}\n`);
    const id = await waitFor(async () => {
      const { body } = await api('get', '/batches');
      return (body.data as { id: string }[])[0]?.id;
    }, 'the batch to be shown');

    const asked = await api('post', `/batches/${id}/cancel`);
    expect([asked.status, asked.body.status]).toEqual([200, 'cancelling']);
    call.end();

    const batch = JSON.parse(await answer) as Record<string, unknown>;
    expect(batch).toMatchObject({ id, status: 'cancelling', cancelled_at: asked.body.cancelled_at });
    expect(batch['request_counts']).toEqual({ total: 2 * MANY, completed: 0, failed: 0 });
  });
});
