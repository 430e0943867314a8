import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { createRequestSplitter } from '../../../../../api/resources/batches/split-requests.ts';
import { ServiceError } from '../../../../../shared/errors/service-error.ts';

/** What the splitter makes of a body that arrives in parts of `size` bytes. */
function split(
  body: string | Buffer,
  size = Infinity,
): { names: string[]; texts: string[]; metadata: string | undefined } {
  const splitter = createRequestSplitter();
  const bytes = Buffer.from(body);
  const pieces = [];
  for (let from = 0; from < bytes.length; from += size)
    pieces.push(...splitter.push(bytes.subarray(from, from + size)));
  pieces.push(...splitter.end());
  return {
    names: pieces.map(({ place }) => place.name),
    texts: pieces.map(({ json }) => String(json)),
    metadata: splitter.metadata()?.toString(),
  };
}

/** Whether a body is split and all that it is split into is JSON. */
function read(body: string): { requests: unknown[] } | undefined {
  try {
    const { texts, metadata } = split(body, 7);
    if (metadata !== undefined) JSON.parse(metadata);
    return { requests: texts.map((text) => JSON.parse(text) as unknown) };
  } catch {
    return undefined;
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const bodies = fc
  .record(
    { requests: fc.array(fc.jsonValue(), { maxLength: 6 }), metadata: fc.jsonValue() },
    { requiredKeys: ['requests'] },
  )
  .chain((value) =>
    fc.record({
      value: fc.constant(value),
      text: fc.constantFrom(0, 1, '\t\r\n').map((blank) => JSON.stringify(value, null, blank)),
    }),
  );

describe('an inline body', () => {
  it.each([
    ['lines sent as JSON', '{"custom_id":"a","body":{}}', 'need `Content-Type: application/x-ndjson`.'],
    ['a file of OpenAI’s batches', '{"completion_window":"24h"}', 'send the requests themselves'],
    ['a file of OpenAI’s batches', '{"input_file_id":"file-1"}', 'send the requests themselves'],
    ['another name', '{"lines":[]}', 'The field "lines" is not allowed beside `requests` and `metadata`.'],
  ])('says what to do with %s: %s', (_what, body, say) => {
    expect(() => split(body)).toThrow(say);
  });

  it('gives the same requests however it is cut into parts', () => {
    fc.assert(
      fc.property(bodies, fc.integer({ min: 1, max: 40 }), ({ value, text }, size) => {
        const { texts, metadata } = split(text, size);
        expect(texts.map((each) => JSON.parse(each) as unknown)).toEqual(JSON.parse(JSON.stringify(value.requests)));
        expect(metadata === undefined ? undefined : JSON.parse(metadata)).toEqual(
          'metadata' in value ? JSON.parse(JSON.stringify(value.metadata)) : undefined,
        );
      }),
    );
  });

  it('an inline body is read when it is JSON, and else not', () => {
    const marks = fc.constantFrom(...'{}[]",:\\ 0-ex\n'.split(''));
    fc.assert(
      fc.property(bodies, marks, fc.nat(), fc.boolean(), ({ text }, mark, at, isReplaced) => {
        const index = at % (text.length + 1);
        const changed = text.slice(0, index) + mark + text.slice(index + (isReplaced ? 1 : 0));
        const value = parse(changed);
        const isBatch =
          typeof value === 'object' &&
          value !== null &&
          'requests' in value &&
          Array.isArray(value.requests) &&
          Object.keys(value).every((name) => name === 'requests' || name === 'metadata');

        expect(read(changed)).toEqual(isBatch ? { requests: value.requests } : undefined);
      }),
      { numRuns: 2_000 },
    );
  });

  it('an inline body names its requests by their place', () => {
    expect(split('{"requests":[{},1,"]"]}').names).toEqual(['`requests[0]`', '`requests[1]`', '`requests[2]`']);
  });

  it('may begin with a byte order mark, cut or not', () => {
    const body = Buffer.from('\ufeff{"requests":[1]}');
    for (const size of [1, 2, 100]) expect(split(body, size).texts).toEqual(['1']);
  });

  it.each([
    ['nothing', '', undefined],
    ['blanks', ' \n', undefined],
    ['an array', '[]', undefined],
    ['a word', 'null', undefined],
    ['no requests', '{}', 'requests'],
    ['metadata alone', '{"metadata":{}}', 'requests'],
    ['requests that are an object', '{"requests":{}}', 'requests'],
    ['requests that are null', '{"requests":null}', 'requests'],
    ['requests twice', '{"requests":[],"requests":[]}', 'requests'],
    ['metadata twice', '{"metadata":{},"metadata":{}}', 'metadata'],
    ['another field', '{"requests":[],"model":"mobius"}', 'model'],
    ['a field with a prototype’s name', '{"__proto__":{},"requests":[]}', '__proto__'],
    ['a field with an endless name', `{"${'x'.repeat(100_000)}":1}`, undefined],
    ['metadata that is very large', `{"metadata":"${'x'.repeat(200_000)}","requests":[]}`, 'metadata'],
    ['a comma at the end', '{"requests":[1]},', undefined],
    ['a cut', '{"requests":[1', undefined],
    ['a cut behind the requests', '{"requests":[1]', undefined],
    ['something behind it', '{"requests":[]} {}', undefined],
    ['a name without quotes', '{requests:[]}', undefined],
  ])('an inline body is refused: %s', (_what, body, param) => {
    let fault: unknown;
    try {
      split(body);
    } catch (error) {
      fault = error;
    }
    expect(fault).toBeInstanceOf(ServiceError);
    expect(fault).toMatchObject({ code: 'invalid_request', param });
  });
});
