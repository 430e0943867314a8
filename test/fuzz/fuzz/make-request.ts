import type { Chance } from '../../support/chance.ts';
import { examplesOf, writeQuery } from '../examples.ts';
import { createValueMaker } from '../make-value.ts';
import type { ValueMaker } from '../make-value.ts';
import type { Endpoint, ServedDocument, ServedParameter } from '../read-document.ts';
import { strangeValue, STRANGE_TEXTS } from '../strange-values.ts';
import type { IdPool } from './id-pool.ts';
import { strangeBody } from './strange-bodies.ts';
import type { WireBody } from './strange-bodies.ts';

export interface FuzzRequest {
  /** What it means to be: for whoever reads of a fault. */
  kind: string;
  /** Undefined: it may reach any endpoint, or none. */
  endpoint: Endpoint | undefined;
  method: string;
  /** With the query. */
  path: string;
  headers: Record<string, string>;
  body: WireBody | undefined;
}

/** Parts of paths that are no ids; written as they go over the wire. */
const STRANGE_SEGMENTS = [
  ...[
    'x',
    '%00',
    '%ff',
    '%',
    '%zz',
    '%2F',
    '..',
    '%2e%2e',
    '.',
    '%F0%9F%98%80',
    '%ED%A0%80',
    '__proto__',
    'constructor',
  ],
  ...['null', '-1', '0', '*', '$ne', '%24where', '[object%20Object]', "'%20OR%201=1", ':id', ';', ',', '~', '@'],
  ...['a'.repeat(300), '%E2%80%AE', '%0d%0aX-Injected:%201', 'req_', `key_${'0'.repeat(24)}`, `req_${'A'.repeat(24)}`],
];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'];
const IDEMPOTENCY_KEYS = ['a', 'b', 'c', 'd', 'x'.repeat(255), 'x'.repeat(256), '', '__proto__', '\u00e4\u00ff', ' '];
const STRANGE_HEADERS: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['Idempotency-Key', IDEMPOTENCY_KEYS],
  ['Prefer', ['respond-async', 'respond-async;x', 'wait=1, respond-async', ',,,', '\u00ff']],
  ['Last-Event-ID', ['0', '1', '-1', '999999999999999', '9999999999999999', 'x', '1.5', '']],
  ['Accept', ['text/html', 'application/xml', '*/*;q=0', 'x']],
  ['Accept-Encoding', ['gzip', 'br;q=1', 'identity;q=0', '*;q=0']],
  ['If-None-Match', ['*', '"x"', 'W/"x"', ',']],
  ['Range', ['bytes=0-1', 'bytes=5-', 'x']],
  ['X-HTTP-Method-Override', ['DELETE', 'TRACE']],
  ['Origin', ['null', 'https://evil.test']],
  ['Expect', ['100-continue', 'something']],
  ['X-Request-Id', ['req_000000000000000000000000', '../x']],
  ['Cookie', ['a=b; __proto__=x']],
];

/** No receiver of the Internet must hear of any of this. */
const NOWHERE = 'https://receiver.invalid/hook';

function withoutReceivers(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll(/https:\/\/example\.com[^"]*/g, NOWHERE)) as unknown;
}

/** Puts something strange in place of a part of a JSON value. */
function spoil(chance: Chance, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || chance.is(0.15)) return strangeValue(chance);
  const names = Object.keys(value);
  if (names.length === 0) return strangeValue(chance);
  const name = chance.pick(names);
  const entries = Object.entries(value).map(([key, inner]) => [
    key,
    key === name ? spoil(chance, inner) : (inner as unknown),
  ]);
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}

export interface RequestMaker {
  make(chance: Chance, ids: IdPool): FuzzRequest;
}

/** Makes requests from the document: such as it allows, nearly so, and not at all. */
export function createRequestMaker(document: ServedDocument, endpoints: readonly Endpoint[]): RequestMaker {
  const bodies = new Map(
    endpoints.map((endpoint) => [
      endpoint.id,
      examplesOf(document, endpoint).flatMap(({ body, contentType }) =>
        body === undefined || contentType === undefined ? [] : [{ contentType, body: withoutReceivers(body) }],
      ),
    ]),
  );

  function segmentOf(
    chance: Chance,
    ids: IdPool,
    parameter: ServedParameter,
    maker: ValueMaker,
    wrongness: number,
  ): string {
    if (chance.is(wrongness)) return chance.pick(STRANGE_SEGMENTS);
    const known = ids.pick(chance, parameter.name);
    if (known !== undefined && !chance.is(0.1)) return encodeURIComponent(known);
    return encodeURIComponent(String(maker.make(parameter.schema, { wrongness: 0 })).toWellFormed());
  }

  function pathOf(chance: Chance, ids: IdPool, endpoint: Endpoint, maker: ValueMaker, wrongness: number): string {
    const { template, parameters } = endpoint;
    const path = template.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
      const parameter = parameters.find((one) => one.in === 'path' && one.name === name);
      return parameter === undefined ? 'x' : segmentOf(chance, ids, parameter, maker, wrongness);
    });
    const query = parameters.flatMap((parameter) => {
      if (parameter.in !== 'query' || !chance.is(0.3)) return [];
      const value = chance.is(wrongness)
        ? chance.pick(STRANGE_TEXTS)
        : parameter.name === 'after'
          ? (ids.pick(chance, chance.pick(['key_id', 'entity_id', 'webhook_id'])) ?? 'x')
          : maker.make(parameter.schema, { wrongness: 0 });
      return [[parameter.name, chance.is(wrongness / 4) ? [value, value] : value] as const];
    });
    const extra = chance.is(wrongness)
      ? [[chance.pick(['__proto__', 'x', 'a[b]', '']), chance.pick(STRANGE_TEXTS)]]
      : [];
    return path + writeQuery(Object.fromEntries([...query, ...extra]) as Record<string, unknown>);
  }

  function bodyValue(chance: Chance, endpoint: Endpoint, maker: ValueMaker, wrongness: number) {
    const examples = bodies.get(endpoint.id) ?? [];
    const [type, { schema }] = chance.pick(Object.entries(endpoint.body));
    if (examples.length > 0 && chance.is(0.4)) {
      const { body, contentType } = chance.pick(examples);
      return { contentType, value: chance.is(wrongness * 4) ? spoil(chance, body) : body };
    }
    return { contentType: type, value: withoutReceivers(maker.make(schema, { wrongness })) };
  }

  function bodyOf(chance: Chance, endpoint: Endpoint, maker: ValueMaker, wrongness: number, isStrange: boolean) {
    if (Object.keys(endpoint.body).length === 0) return chance.is(wrongness) ? strangeBody(chance, {}) : undefined;
    const { contentType, value } = bodyValue(chance, endpoint, maker, wrongness);
    if (isStrange) return strangeBody(chance, value);
    const text = typeof value === 'string' && contentType !== 'application/json' ? value : JSON.stringify(value);
    return { contentType, bytes: Buffer.from(text) };
  }

  function headersOf(chance: Chance, isStrange: boolean): Record<string, string> {
    if (!isStrange) return chance.is(0.1) ? { 'Idempotency-Key': `k${chance.below(50)}` } : {};
    const [name, values] = chance.pick(STRANGE_HEADERS);
    return { [name]: chance.pick(values) };
  }

  const KINDS = ['valid', 'valid', 'valid', 'nearly', 'nearly', 'nearly', 'wrong', 'body', 'path', 'header', 'method'];

  return {
    make(chance, ids) {
      const endpoint = chance.pick(endpoints);
      const kind = chance.pick(KINDS);
      const maker = createValueMaker(document, chance);
      const wrongness = kind === 'nearly' ? 0.05 : kind === 'wrong' ? 0.3 : 0;
      const path = pathOf(chance, ids, endpoint, maker, kind === 'path' ? 0.8 : wrongness);
      const method = kind === 'method' ? chance.pick(METHODS) : endpoint.method.toUpperCase();
      return {
        kind,
        // A segment of dots is taken out of a path by whoever reads it.
        endpoint: kind === 'method' || /\/(\.|%2e){1,2}(\/|\?|$)/i.test(path) ? undefined : endpoint,
        method,
        path,
        headers: headersOf(chance, kind === 'header'),
        body: bodyOf(chance, endpoint, maker, wrongness, kind === 'body'),
      };
    },
  };
}
