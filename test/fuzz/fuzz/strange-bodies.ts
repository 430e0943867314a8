import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

import type { Chance } from '../../support/chance.ts';

/** A body as it goes over the wire. */
export interface WireBody {
  contentType?: string;
  contentEncoding?: string;
  bytes: Buffer;
}

const JSON_TYPE = 'application/json';

const CONTENT_TYPES = [
  ...['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'],
  ...['application/json; charset=utf-16', 'application/json; charset=latin1', 'application/json;charset="utf-8"'],
  ...[
    'application/problem+json',
    'application/x-ndjson',
    'APPLICATION/JSON',
    '*/*',
    'a',
    '/',
    ';',
    'application/json,',
  ],
];

/** Texts that are no JSON, or JSON of a kind that nobody expects. */
const TEXTS: readonly (string | Buffer)[] = [
  ...[
    '',
    ' ',
    '{',
    '}',
    '[',
    '{"a":',
    '{"a":1,}',
    "{'a':1}",
    '{a:1}',
    'null',
    'true',
    '1',
    '"text"',
    '[]',
    '[{}]',
    '{}',
  ],
  ...['NaN', '{"a":NaN}', '{"a":1}{"b":2}', '{"a":1}\n{"b":2}\n', '{"a":1,"a":2}', '{"a":"\\u12"}', '{"a":"\t"}'],
  ...['\ufeff{}', '{"\\u0000":1}', '{"__proto__":{"a":1}}', '{"a":1e999}', '{"a":-0}', '{"a":01}', '{"": ""}'],
  Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d]),
  Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  Buffer.from('{}', 'utf16le'),
];

const ENCODERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes),
  deflate: (bytes) => deflateSync(bytes),
  br: (bytes) => brotliCompressSync(bytes),
  identity: (bytes) => bytes,
};
const ENCODINGS = Object.keys(ENCODERS);
const BAD_ENCODINGS = ['zstd', 'gzip, gzip', 'compress', '', 'GZIP'];

function encode(chance: Chance, bytes: Buffer): WireBody {
  const contentEncoding = chance.pick(ENCODINGS);
  const encoded = ENCODERS[contentEncoding]?.(bytes) ?? bytes;
  // Now and then it ends too early, or is not what it says.
  const sent = chance.is(0.3) ? encoded.subarray(0, Math.floor(encoded.length / 2)) : encoded;
  return { contentType: JSON_TYPE, contentEncoding, bytes: chance.is(0.2) ? bytes : sent };
}

/** A body that an endpoint should refuse, or read in spite of how it comes; `value` is one that it reads. */
export function strangeBody(chance: Chance, value: unknown): WireBody {
  const text = JSON.stringify(value);
  const makers: readonly (() => WireBody)[] = [
    () => ({ contentType: chance.pick(CONTENT_TYPES), bytes: Buffer.from(text) }),
    () => ({ bytes: Buffer.from(text) }),
    () => ({ contentType: JSON_TYPE, bytes: Buffer.from(chance.pick(TEXTS)) }),
    () => ({ contentType: JSON_TYPE, bytes: Buffer.from(text.slice(0, chance.below(text.length))) }),
    () => ({ contentType: JSON_TYPE, bytes: Buffer.from(`${' '.repeat(chance.below(70_000))}${text}`) }),
    () => ({ contentType: JSON_TYPE, bytes: Buffer.from('['.repeat(chance.below(20_000))) }),
    () => ({ contentType: JSON_TYPE, contentEncoding: chance.pick(BAD_ENCODINGS), bytes: Buffer.from(text) }),
    () => encode(chance, Buffer.from(text)),
    () => encode(chance, Buffer.from(text)),
  ];
  return chance.pick(makers)();
}
