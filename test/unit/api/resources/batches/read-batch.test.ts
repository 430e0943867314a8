import { Readable } from 'node:stream';

import { describe, expect, it } from '@jest/globals';
import type { Request } from 'express';

import { readBatch } from '../../../../../api/resources/batches/read-batch.ts';
import type { BatchLine } from '../../../../../api/resources/batches/to-line.ts';

const MIB = 1024 * 1024;

const lineOf = (index: number) =>
  `${JSON.stringify({ custom_id: `${'😀'.repeat(250)}${index}`, body: { messages: [{ role: 'user', content: 'Hi' }] } })}\n`;

/** The reader takes a stream with headers; a whole Request needs a socket. */
function requestOf(parts: Iterable<Buffer>) {
  const headers = { 'content-type': 'application/x-ndjson' };
  return Object.assign(Readable.from(parts), { headers, complete: true, socket: {} }) as unknown as Request;
}

describe('a batch that is being read', () => {
  it('counts what it remembers of its requests, and remembers little', async () => {
    const held: number[] = [];

    await readBatch(
      requestOf(
        (function* () {
          for (let index = 0; index < 10_000; index += 1) yield Buffer.from(lineOf(index));
        })(),
      ),
      { keep: () => Promise.resolve(), hold: (bytes) => held.push(bytes), inTurn: (work) => work() },
    );

    expect(Math.max(...held)).toBeGreaterThan(3 * MIB);
    expect(Math.max(...held)).toBeLessThan(6 * MIB);
  });

  it('is parsed in turns of about a MiB each, in which nobody waits for its lines to be stored', async () => {
    let inTurn = false;
    let turns = 0;
    let readInTurns = 0;
    const lines: BatchLine[] = [];

    // The last line ends with the body.
    const body = Array.from({ length: 3_000 }, (_, index) => lineOf(index))
      .join('')
      .trimEnd();
    await readBatch(requestOf([Buffer.from(body)]), {
      keep(line) {
        expect(inTurn).toBe(false);
        lines.push(line);
        return Promise.resolve();
      },
      hold: () => undefined,
      async inTurn(work) {
        inTurn = true;
        turns += 1;
        const result = await work();
        inTurn = false;
        if (Array.isArray(result)) readInTurns += result.length;
        return result;
      },
    });

    expect(lines).toHaveLength(3_000);
    expect(readInTurns).toBe(3_000);
    expect(turns).toBeLessThan(6);
  });
});
