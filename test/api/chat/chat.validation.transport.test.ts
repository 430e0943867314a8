import { monitorEventLoopDelay } from 'node:perf_hooks';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { useService, useTenant } from '../../support/use-service.ts';

const MIB = 1024 * 1024;
const BODY = JSON.stringify(chatOf('Hi'));
const service = useService();
const tenant = useTenant(service, { credits: 1_000_000_000, tenant: { tpm: 1_000_000_000 } });
beforeAll(async () => {
  // Room for the largest body, which no model of today has.
  const targets = [{ provider: 'simulated', model: 'sim', context_window: 10_000_000 }];
  await service.admin('put', '/tiers/mobius', { rates: { prompt: 1, completion: 1 }, targets });
});

/** Sends bytes as they are; `type` undefined leaves the header out. */
function sendRaw(body: string | Buffer, headers: Record<string, string> = {}): request.Test {
  const all = { 'Content-Type': 'application/json', ...headers };
  const call = request(service.app).post('/platform/v1/chat').auth(tenant.key, { type: 'bearer' }).set(all);
  // supertest would encode a string as JSON.
  return call.serialize((sent: unknown) => sent as string).send(body);
}

const refused = async (call: request.Test) => {
  const refusal = refusalOf(await call);
  expect(refusal).toMatchObject({ status: 400, code: 'invalid_request', type: 'invalid_request_error' });
  return refusal.message;
};

describe('the Content-Type', () => {
  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    'application/json; charset=utf-16',
    'application/json; charset=latin1',
    'x',
  ])('the Content-Type is refused: %s', async (type) => {
    expect(await refused(sendRaw(BODY, { 'Content-Type': type }))).toContain('application/json');
  });

  it('the Content-Type is asked for where there is none', async () => {
    const call = request(service.app).post('/platform/v1/chat').auth(tenant.key, { type: 'bearer' });
    expect(await refused(call)).toContain('application/json');
  });

  it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;Charset="UTF-8"'])(
    'the Content-Type is accepted: %s',
    async (type) => {
      expect((await sendRaw(BODY, { 'Content-Type': type })).status).toBe(200);
    },
  );
});

describe('the bytes of a body', () => {
  it.each([
    ['none', ''],
    [
      'bytes that are not UTF-8',
      Buffer.concat([
        Buffer.from('{"messages":[{"role":"user","content":"'),
        Buffer.from([0xff, 0xc0]),
        Buffer.from('"}]}'),
      ]),
    ],
    ['half of a character at the end', Buffer.from(BODY + 'é').subarray(0, -1)],
    ['UTF-16', Buffer.from(BODY, 'utf16le')],
  ])('the bytes of a body are refused: %s', async (_what, body) => {
    await refused(sendRaw(body));
  });

  it('the bytes of a body may begin with a byte order mark', async () => {
    expect((await sendRaw(`\ufeff${BODY}`)).status).toBe(200);
  });
});

describe('a compressed body', () => {
  it.each([
    ['gzip', gzipSync(BODY)],
    ['x-gzip', gzipSync(BODY)],
    ['deflate', deflateSync(BODY)],
    ['br', brotliCompressSync(BODY)],
    ['Identity', Buffer.from(BODY)],
    ['', Buffer.from(BODY)],
  ])('a compressed body is read: %s', async (encoding, body) => {
    expect((await sendRaw(body, { 'Content-Encoding': encoding })).status).toBe(200);
  });

  it.each([
    ['gzip that is not gzip', 'gzip', Buffer.from(BODY), 'Content-Encoding'],
    ['gzip that is cut off', 'gzip', gzipSync(BODY).subarray(0, 20), 'Content-Encoding'],
    ['deflate that is cut off', 'deflate', deflateSync(BODY).subarray(0, 20), 'Content-Encoding'],
    ['br that is cut off', 'br', brotliCompressSync(BODY).subarray(0, 20), 'Content-Encoding'],
    ['an unknown encoding', 'zstd-x', Buffer.from(BODY), 'gzip, deflate, br'],
    ['two encodings', 'gzip, br', Buffer.from(BODY), 'gzip, deflate, br'],
  ])('a compressed body is refused: %s', async (_what, encoding, body, rule) => {
    expect(await refused(sendRaw(body, { 'Content-Encoding': encoding }))).toContain(rule);
  });

  it('is a bomb: it is refused when it has grown to the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * MIB, ' '));
    expect(bomb.length).toBeLessThan(MIB / 4);

    expect(await refused(sendRaw(bomb, { 'Content-Encoding': 'gzip' }))).toContain(String(20 * MIB));
  });
});

describe('a large body', () => {
  const largest = JSON.stringify({ messages: Array(100).fill({ role: 'user', content: 'E'.repeat(16_000) }) });
  /** 19.2 MB: every character as two escaped code units. */
  const escaped = Buffer.from(largest.replaceAll('E', '\\ud83e\\udd89'));

  it('is refused above 20 MiB, said and unsaid', async () => {
    const body = Buffer.alloc(20 * MIB + 1, ' ');

    expect(await refused(sendRaw(body))).toContain(String(20 * MIB));

    const response = await fetch(`${service.url}/platform/v1/chat`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tenant.key}`, 'Content-Type': 'application/json' },
      // A stream has no Content-Length.
      body: new Blob([body]).stream(),
      duplex: 'half',
    });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(String(20 * MIB))]);
  });

  it('is answered when it is the largest that is valid', async () => {
    expect(escaped.length).toBeGreaterThan(19_200_000);

    const response = await sendRaw(escaped);

    expect([response.status, response.text.slice(-200)]).toEqual([
      200,
      expect.stringContaining('"finish_reason":"stop"'),
    ]);
  });

  it('may have in its texts whatever parts values outside of them', async () => {
    const content = `${'[,{"\\'.repeat(3_000)}\\`;

    const response = await sendRaw(JSON.stringify({ messages: Array(100).fill({ role: 'user', content }) }));

    expect([response.status, response.text.slice(0, 200)]).toEqual([200, expect.stringContaining('chat.completion')]);
  });

  it.each([
    ['brackets that never close', () => Buffer.alloc(20 * MIB, '[')],
    ['arrays in arrays', () => Buffer.concat([Buffer.alloc(10 * MIB, '['), Buffer.alloc(10 * MIB, ']')])],
    ['the largest but for a fault at its end', () => Buffer.concat([escaped.subarray(0, -2), Buffer.from(',{}]}')])],
    ['two million messages', () => Buffer.from(`{"messages":[{}${',{}'.repeat(2_000_000)}]}`)],
    [
      'a million fields',
      () => Buffer.from(`{"a":1${Array.from({ length: 1_000_000 }, (_, index) => `,"k${String(index)}":1`).join('')}}`),
    ],
    ['nested ten million deep', () => Buffer.from(`{"a":${'['.repeat(10_000_000)}${']'.repeat(10_000_000)}}`)],
  ])('a large body does not hold the others up: %s', async (_what, bodyOf) => {
    const body = bodyOf();
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();

    await refused(sendRaw(body));

    delay.disable();
    // Checking such bodies whole took many seconds. How near it comes to the 200 ms of E16 (docs/faults.md) is a
    // measurement for an idle machine, not for a test: reading the largest valid body alone takes about 150.
    expect(delay.max / 1e6).toBeLessThan(3_000);
  });
});
