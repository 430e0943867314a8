import { expect, it } from '@jest/globals';

import type { BatchRow } from '../../../../shared/mongo/batches/batch-repository.ts';
import { advance, isAtRest, openBatch } from '../../../../workers/batches/open-batch.ts';
import type { LineEvent, OpenBatch } from '../../../../workers/batches/open-batch.ts';

const line = (index: number) => ({ index, requestId: `req_${String(index)}` });
const refused = (now: number, ms: number): LineEvent => ({ kind: 'refused', waitFor: 'tpm', now, ms });
const page = (cursor: number, isRead: boolean): LineEvent => ({ kind: 'page', cursor, isRead });
const waits = (...indexes: number[]): LineEvent => ({ kind: 'waits', lines: indexes.map((index) => ({ index })) });
const held = (index: number): LineEvent => ({ kind: 'held', index, tier: 'mobius' });
const sent = (...indexes: number[]): LineEvent => ({ kind: 'sent', lines: indexes.map(line) });
const woken = (count: number, isProbe = false): LineEvent => ({ kind: 'woken', tier: 'mobius', count, isProbe });

function after(...events: LineEvent[]): OpenBatch {
  // The row says nothing of lines.
  const batch = openBatch({} as BatchRow, { completed: 0, failed: 0 });
  for (const event of events) advance(batch, event);
  return batch;
}

it.each<[string, LineEvent[], Partial<OpenBatch['lines']>]>([
  ['wait in the order of their numbers', [waits(3, 1), waits(2)], { waiting: [1, 2, 3].map((index) => ({ index })) }],
  ['are held by their tier', [held(4), held(5)], { held: new Map([['mobius', [4, 5]]]), waiting: [] }],
  [
    'are woken one by one to find out whether their tier answers',
    [held(4), held(5), woken(1, true)],
    { held: new Map([['mobius', [5]]]), waiting: [{ index: 4, isProbe: true }] },
  ],
  [
    'are woken all once their tier answers, and no tier is left without a line',
    [waits(9), held(4), held(5), woken(2)],
    { held: new Map(), waiting: [{ index: 4 }, { index: 5 }, { index: 9 }] },
  ],
  [
    'are known while they are in flight',
    [sent(1, 2), { kind: 'gone', indexes: [1] }],
    { inFlight: new Map([[2, line(2)]]) },
  ],
  ['wait from the last refusal on', [refused(100, 50)], { waitingFor: 'tpm', refusedAt: 100, notBefore: 150 }],
  ['wait no shorter for a second refusal', [refused(100, 50), refused(110, 10)], { refusedAt: 110, notBefore: 150 }],
  [
    'go sooner once lines end that had their tokens',
    [refused(100, 50), { kind: 'freed', soon: 120 }],
    { notBefore: 120 },
  ],
  [
    'go no sooner when they wait for something else',
    [
      { kind: 'refused', waitFor: 'queue', now: 100, ms: 50 },
      { kind: 'freed', soon: 120 },
    ],
    { notBefore: 150 },
  ],
  ['wait for the leader of another shard', [{ kind: 'moved', until: 900 }], { notBefore: 900 }],
  [
    'are not the last refused once another batch has sent one',
    [refused(100, 50), { kind: 'served' }],
    { refusedAt: 0 },
  ],
  ['are gone once they have ended', [waits(1, 2), { kind: 'ended' }], { waiting: [] }],
  [
    'are read again from the first on, but for those in flight',
    [page(7, true), waits(6), held(7), sent(5), { kind: 'rewound' }],
    { waiting: [], held: new Map(), cursor: -1, isRead: false, inFlight: new Map([[5, line(5)]]) },
  ],
])('the lines of a batch %s', (_title, events, lines) => {
  expect(after(...events).lines).toMatchObject(lines);
});

it('lines that are taken wait no longer, nor for what refused them', () => {
  const batch = after(waits(1, 2), refused(100, 50));
  const [first] = batch.lines.waiting;

  advance(batch, { kind: 'taken', lines: first === undefined ? [] : [first] });

  expect(batch.lines).toMatchObject({ waiting: [{ index: 2 }], waitingFor: null, refusedAt: 0 });
});

it.each<[string, LineEvent[], boolean]>([
  ['not all lines have been read', [page(1, false)], false],
  ['a line waits', [page(1, true), waits(1)], false],
  ['a line is held', [page(1, true), held(1)], false],
  ['a line is in flight', [page(1, true), sent(1)], false],
  ['every line has been read and has ended', [page(1, true), sent(1), { kind: 'gone', indexes: [1] }], true],
])('a batch is at rest only at the end: %s', (_title, events, isEnd) => {
  expect(isAtRest(after(...events))).toBe(isEnd);
});
