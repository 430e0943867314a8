import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';

import { describe, expect, it } from '@jest/globals';

import { collectLines, withLastLines } from '../../../../scripts/embedded/output-lines.ts';

describe('the output of a program', () => {
  it('is kept by its last twelve lines, empty ones left out', async () => {
    const stream = new PassThrough();
    const seen: string[] = [];
    const last = collectLines([stream], (line) => seen.push(line));
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`);
    stream.end(`${lines.join('\n\n')}\n`);
    await finished(stream);

    expect(seen).toEqual(lines);
    expect(last).toEqual(lines.slice(8));
  });

  it('is shown below the sentence that it explains', () => {
    expect(withLastLines('It failed.', ['a', 'b'])).toBe('It failed. Its last lines:\n    a\n    b');
    expect(withLastLines('It failed.', [])).toBe('It failed. It printed nothing.');
  });
});
