import { expect, it } from '@jest/globals';

import { createEventParser } from '../../support/stream-client.ts';

const STREAM = 'id: 1\ndata: {"a":"é"}\n\n: ping\nid: 2\ndata: [DONE]\n\n';

it('gives the same events however the stream is cut into parts', () => {
  const expected = [
    { seq: 1, data: '{"a":"é"}' },
    { seq: 2, data: '[DONE]' },
  ];
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parse = createEventParser();
    const parts = Array.from({ length: Math.ceil(STREAM.length / size) }, (_, index) =>
      STREAM.slice(index * size, (index + 1) * size),
    );
    expect(parts.flatMap(parse)).toEqual(expected);
  }
});

it('throws on a block of comments alone, at which some clients fail', () => {
  expect(() => createEventParser()(': ping\n\nid: 1\n')).toThrow('This is no event of a stream');
});

it('keeps back an event whose end has not come', () => {
  expect(createEventParser()('id: 1\ndata: {"a":1}\n')).toEqual([]);
});

it('throws on lines that no stream of the service has', () => {
  expect(() => createEventParser()('event: x\ndata: 1\n\n')).toThrow('This is no event of a stream');
});
