import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';

/** One bad or very large request, and what is right for it. */
export interface Attack {
  name: string;
  method?: string;
  /** Below `/platform/v1`. */
  path: string;
  headers?: Record<string, string>;
  /** Made when it is sent: some are large. */
  body?: () => Buffer;
  statuses: readonly number[];
}

const MEGABYTE = 1024 * 1024;
/** docs/spec.md#bodies. */
const CHAT_BYTES = 20 * MEGABYTE;
const OTHER_BYTES = 64 * 1024;
const BOMB_BYTES = 256 * MEGABYTE;

const JSON_TYPE = { 'Content-Type': 'application/json' };
const chat = (content: unknown, more: object = {}) =>
  Buffer.from(JSON.stringify({ messages: [{ role: 'user', content }], ...more }));
const raw = (json: string) => () => Buffer.from(json);

/** Arrays in arrays, closed again, up to so many bytes. */
const nested = (bytes: number) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2);

const BOMBS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes, { level: 9 }),
  deflate: (bytes) => deflateSync(bytes, { level: 9 }),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
};

function bombs(path: string, statuses: readonly number[]): Attack[] {
  return Object.entries(BOMBS).flatMap(([encoding, compress]) => {
    const headers = { ...JSON_TYPE, 'Content-Encoding': encoding };
    const bomb = () => compress(Buffer.alloc(BOMB_BYTES, ' '));
    const packed = () => compress(Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }] })));
    return [
      { name: `${encoding}: 256 MiB of blanks`, path, headers, body: bomb, statuses },
      { name: `${encoding}: cut short`, path, headers, body: () => packed().subarray(0, 20), statuses: [400] },
      { name: `${encoding}: not what it says`, path, headers, body: raw('{"messages":[]}'), statuses: [400] },
    ];
  });
}

function charsets(path: string, statuses: readonly number[]): Attack[] {
  const types = ['text/plain', 'application/json; charset=utf-16', 'application/json; charset=iso-8859-1', 'text/json'];
  return types.map((type) => ({
    name: type,
    path,
    headers: { 'Content-Type': type },
    body: raw('{"messages":[{"role":"user","content":"Hi"}]}'),
    statuses,
  }));
}

/** What is the same for every endpoint that reads JSON. */
function forms(path: string, large: number, tooLarge: readonly number[]): Attack[] {
  const attack = (name: string, body: () => Buffer, statuses: readonly number[] = [400]): Attack => ({
    name,
    path,
    headers: JSON_TYPE,
    body,
    statuses,
  });
  return [
    attack('brackets that never close', raw('['.repeat(large - 1))),
    attack('arrays in arrays', raw(nested(large - 2))),
    attack('objects in objects', () => Buffer.from('{"a":'.repeat(large / 6) + '1' + '}'.repeat(large / 6))),
    attack('metadata, deep', raw(`{"entity_id":"e","metadata":${nested(large - 100)},"messages":[]}`)),
    attack('one long text', raw(`"${'x'.repeat(large - 2)}"`)),
    attack('one long number', raw(`{"max_tokens":${'9'.repeat(large - 100)}}`)),
    attack('one long name', raw(`{"${'x'.repeat(large - 10)}":1}`)),
    attack('a million escapes', raw(`"${'\\u0000'.repeat((large - 2) / 6)}"`)),
    attack('a byte too many', raw(`"${'x'.repeat(large)}"`), tooLarge),
    attack('no UTF-8', () =>
      Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(large - 100, 0xff), Buffer.from('"}')]),
    ),
    attack('half of a character in bytes', () => Buffer.from('22eda08022', 'hex')),
    attack('UTF-16', () => Buffer.from('{"a":1}', 'utf16le')),
    attack('a byte order mark', raw('\ufeff{"messages":[]}')),
  ];
}

const many = (count: number, item: string) => Array.from({ length: count }, () => item).join(',');
const fields = (count: number, value: string) =>
  Array.from({ length: count }, (_, index) => `"f${index}":${value}`).join(',');

/** Of chat bodies alone. */
const CHAT: Attack[] = [
  { name: 'NUL in a text', path: '/chat', body: () => chat('a\u0000b'), statuses: [200] },
  { name: 'halves of characters', path: '/chat', body: () => chat('\ud800 and \udc00\ud800'), statuses: [200] },
  {
    name: 'control characters',
    path: '/chat',
    body: () => chat('\u0001\u001b[31m\u0085\u2028\ufeff'),
    statuses: [200],
  },
  {
    name: '__proto__ beside the messages',
    path: '/chat',
    body: raw('{"__proto__":{"a":1},"messages":[{"role":"user","content":"Hi"}]}'),
    statuses: [200],
  },
  {
    name: '__proto__ in a message',
    path: '/chat',
    body: raw('{"messages":[{"role":"user","content":"Hi","__proto__":{"role":"system"}}]}'),
    statuses: [200],
  },
  {
    name: '__proto__ for the role',
    path: '/chat',
    body: raw('{"messages":[{"__proto__":{"role":"user"},"content":"Hi"}]}'),
    statuses: [400],
  },
  {
    name: '__proto__ in metadata',
    path: '/chat',
    body: raw('{"messages":[{"role":"user","content":"Hi"}],"metadata":{"__proto__":1}}'),
    statuses: [400],
  },
  {
    name: 'metadata of a million values',
    path: '/chat',
    body: raw(`{"messages":[{"role":"user","content":"Hi"}],"metadata":{"a":[${many(1_000_000, '1')}]}}`),
    statuses: [400],
  },
  { name: 'a million messages', path: '/chat', body: raw(`{"messages":[${many(1_000_000, '{}')}]}`), statuses: [400] },
  {
    name: 'as many messages as are parsed',
    path: '/chat',
    body: raw(`{"messages":[${many(90_000, '{"role":"user","content":"Hi"}')}]}`),
    statuses: [400],
  },
  {
    name: 'as many unknown fields as are parsed',
    path: '/chat',
    body: raw(`{${fields(90_000, '1')},"messages":[{"role":"user","content":"Hi"}]}`),
    statuses: [200],
  },
  {
    name: 'unknown fields up to a megabyte',
    path: '/chat',
    body: raw(`{${fields(45_000, '[]')},"messages":[{"role":"user","content":"Hi"}]}`),
    statuses: [200],
  },
  {
    name: 'content in a hundred thousand parts',
    path: '/chat/completions',
    body: raw(`{"messages":[{"role":"user","content":[${many(25_000, '{"type":"text","text":""}')}]}]}`),
    statuses: [400],
  },
  { name: 'the longest message', path: '/chat', body: () => chat('😀'.repeat(16_000)), statuses: [200] },
  { name: 'a message that is too long', path: '/chat', body: () => chat('😀'.repeat(16_001)), statuses: [400] },
  { name: 'a message of 20 MB', path: '/chat', body: () => chat('x'.repeat(CHAT_BYTES - 100)), statuses: [400] },
];

/** 100 messages of 16,000 code points; escaped, each is 12 bytes. */
function largestBody(): Buffer {
  const content = '\\ud83d\\ude00'.repeat(16_000);
  return Buffer.from(`{"messages":[${many(100, `{"role":"user","content":"${content}"}`)}],"max_tokens":16}`);
}
function largestText(): Buffer {
  const content = 'abcdefg '.repeat(2_000);
  return Buffer.from(`{"messages":[${many(100, `{"role":"user","content":"${content}"}`)}],"max_tokens":16}`);
}

const LARGEST: Attack[] = [
  { name: 'the largest valid body, escaped', path: '/chat', body: largestBody, statuses: [200] },
  { name: 'the largest valid body, escaped and streamed', path: '/chat/stream', body: largestBody, statuses: [200] },
  { name: 'the largest valid body of letters', path: '/chat', body: largestText, statuses: [200] },
  {
    name: 'the largest valid body under an Idempotency-Key',
    path: '/chat',
    headers: { 'Idempotency-Key': 'largest' },
    body: largestBody,
    statuses: [200],
  },
];

const HEADS: Attack[] = [
  { name: 'a query of a thousand parameters', method: 'GET', path: `/keys?${'a=1&'.repeat(1_000)}`, statuses: [200] },
  {
    name: 'a query of 15 KB',
    method: 'GET',
    path: `/usage?entity_id=${'%F0%9F%98%80'.repeat(1_200)}`,
    statuses: [400],
  },
  { name: 'a thousand filters', method: 'GET', path: `/usage?${'mode=live&'.repeat(1_000)}`, statuses: [400] },
  { name: 'a head of 20 KB', method: 'GET', path: '/keys', headers: { 'X-Long': 'x'.repeat(20_000) }, statuses: [431] },
  { name: 'a cursor of 8 KB', method: 'GET', path: `/entities?after=${'x'.repeat(8_000)}`, statuses: [400] },
  { name: 'NUL in a cursor', method: 'GET', path: '/keys?after=%00', statuses: [400] },
  { name: 'a path of 8 KB', method: 'GET', path: `/entities/${'%2F'.repeat(2_700)}`, statuses: [404] },
  { name: 'half of a character in a path', method: 'GET', path: '/entities/%ED%A0%80', statuses: [400] },
];

function withType(attack: Attack): Attack {
  return attack.body === undefined ? attack : { ...attack, headers: { ...JSON_TYPE, ...attack.headers } };
}

/** E16's list. Chat bodies may be 20 MiB, others 64 KiB; the small run has chat bodies of a tenth and no bombs. */
export function badInput(size: 'full' | 'small'): Attack[] {
  const chatBytes = size === 'full' ? CHAT_BYTES : CHAT_BYTES / 10;
  const named = (attacks: readonly Attack[]) =>
    attacks.map((attack) => ({ ...attack, name: `${attack.path.slice(0, 20)} ${attack.name}` }));
  return named([
    ...forms('/chat', chatBytes, [400]),
    ...forms('/entities', OTHER_BYTES, [413]),
    ...(size === 'full' ? [...bombs('/chat', [400]), ...bombs('/entities', [413])] : []),
    ...charsets('/chat', [400]),
    ...charsets('/entities', [415]),
    ...CHAT,
    ...LARGEST,
    ...HEADS,
  ]).map(withType);
}
