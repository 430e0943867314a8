import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';

import { createLineSplitter } from '../../../../../api/resources/batches/split-requests.ts';
import { CHAT_LIMITS } from '../../../../../shared/contracts/chat-request.ts';

function split(body: Buffer, size = Infinity): [string, string | undefined][] {
  const splitter = createLineSplitter();
  const pieces = [];
  for (let from = 0; from < body.length; from += size) pieces.push(...splitter.push(body.subarray(from, from + size)));
  pieces.push(...splitter.end());
  return pieces.map(({ place, json }) => [place.name, json?.toString()]);
}

describe('a body of lines', () => {
  it('is cut at its line feeds, however it arrives', () => {
    const lines = fc.array(fc.string({ minLength: 1 }).map((text) => JSON.stringify(text)));
    fc.assert(
      fc.property(lines, fc.integer({ min: 1, max: 20 }), (texts, size) => {
        expect(split(Buffer.from(texts.join('\n')), size)).toEqual(texts.map((text, at) => [`Line ${at + 1}`, text]));
      }),
    );
  });

  it('has the numbers of an editor, blank lines left out', () => {
    expect(split(Buffer.from('\n{}\r\n \t\r\n1\n\n'))).toEqual([
      ['Line 2', '{}\r'],
      ['Line 4', '1'],
    ]);
  });

  it('costs nothing for lines that are blank: a small compressed body may have fifty million', () => {
    const concat = jest.spyOn(Buffer, 'concat');
    try {
      expect(split(Buffer.from('\n \r\n\t\n'.repeat(10_000)), 65_536)).toEqual([]);
      expect(concat).not.toHaveBeenCalled();
    } finally {
      concat.mockRestore();
    }
  });

  it('lets go of a line that is longer than a request may be, and of none other', () => {
    const long = Buffer.alloc(CHAT_LIMITS.bodyBytesMax + 1, 'x');
    const longest = long.subarray(1);
    const body = Buffer.concat([Buffer.from('1\n'), long, Buffer.from('\n2\n'), longest]);

    expect(split(body, 65_536).map(([name, text]) => [name, text?.length])).toEqual([
      ['Line 1', 1],
      ['Line 2', undefined],
      ['Line 3', 1],
      ['Line 4', CHAT_LIMITS.bodyBytesMax],
    ]);
  });
});
