import { afterEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { openConformanceLab } from '../../model/conformance/conformance-lab.ts';
import type { ConformanceLab } from '../../model/conformance/conformance-lab.ts';
import { ACTORS, startConformanceRun } from '../../model/conformance/conformance-run.ts';
import type { Choice } from '../../model/conformance/conformance-run.ts';

const SEED = 20_261_121;
/** Of the scripts without a guard, below, the hardest to find out takes 107 of them. More with the variable. */
const INTERLEAVINGS = Number(process.env['INTERLEAVINGS'] || 200);
/** Balances in micro-credits: for all requests, for two, for one and for less than one of them. */
const BALANCES = [10_000, 65, 45, 20];

/** Half of the time a request gets on as it should: otherwise most would end before a worker has written anything. */
const choice: fc.Arbitrary<Choice> = fc.record({
  actor: fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...ACTORS) },
    { weight: 2, arbitrary: fc.constantFrom<Choice['actor']>('deliver', 'twin', 'sweep') },
    { weight: 6, arbitrary: fc.constant<Choice['actor']>('work') },
  ),
  subject: fc.nat(1),
  pick: fc.nat(5),
  fault: fc.oneof(
    { weight: 7, arbitrary: fc.constant<Choice['fault']>('none') },
    { weight: 2, arbitrary: fc.constantFrom<Choice['fault']>('lost', 'gaveUp') },
    { weight: 1, arbitrary: fc.constant<Choice['fault']>('crash') },
  ),
});
const all = (subject: number, actors: readonly Choice['actor'][]): Choice[] =>
  actors.map((actor) => ({ actor, subject, pick: 0, fault: 'none' }));
const onTheWay = (subject: number) => all(subject, ['admit', 'enqueue', 'deliver', 'work']);
const beginnings = [[], onTheWay(0), [...onTheWay(0), ...onTheWay(1)], all(0, ['admit', 'join'])];
const interleaving = fc
  .tuple(
    fc.constantFrom(...BALANCES),
    fc.constantFrom(...beginnings),
    fc.array(choice, { minLength: 10, maxLength: 50 }),
  )
  .map(([balance, beginning, choices]) => [balance, [...beginning, ...choices]] as const);

let lab: ConformanceLab | undefined;
afterEach(async () => {
  await lab?.close();
});

async function explore(edit?: (lua: string) => string) {
  const opened = await openConformanceLab(edit);
  lab = opened;
  return fc.check(
    fc.asyncProperty(interleaving, async ([balance, choices]) => {
      const run = await startConformanceRun(opened, balance);
      for (const next of choices) await run.step(next);
      await run.comeToRest();
      const broken = await run.brokenPromises();
      if (broken.length > 0) throw new Error(broken.join('\n'));
    }),
    // A changed script is found out by its first failure; only the real ones deserve a shorter counterexample.
    { seed: SEED, numRuns: INTERLEAVINGS, endOnFailure: edit !== undefined },
  );
}

describe('the scripts in Redis', () => {
  it(`answer and leave what the model says, under ${INTERLEAVINGS} interleavings of two requests of a tenant`, async () => {
    const result = await explore();

    expect(result.failed ? [String(result.errorInstance), JSON.stringify(result.counterexample)] : []).toEqual([]);
    expect(result.numRuns).toBe(INTERLEAVINGS);
  });
});

/** Each a guard of a script, and the script without it. */
const GUARDS: [guard: string, text: string, without: string][] = [
  [
    'an admission that is sent again takes nothing',
    'if not existing or not existing[1] then return end',
    'if true then return end',
  ],
  ['a void is for an accepted request only', "if state and state ~= 'accepted' then return state end", ''],
  [
    'what another call has joined stays',
    "if state == 'accepted' and is_told and is_joined then return 'joined' end",
    '',
  ],
  ['only a later delivery may claim', 'if fence >= tonumber(delivery) and known_owner ~= owner then', 'if false then'],
  ['a claim that is sent again is the same claim', '(delivery) and known_owner ~= owner then', '(delivery) then'],
  [
    'only the delivery with the fence may append',
    "if known_fence ~= fence then return known_fence + 0 < fence + 0 and 'accepted' or 'superseded' end",
    '',
  ],
  ['a batch that is sent again is not written again', 'if sent >= last_seq + 0 then', 'if false then'],
  [
    'only the delivery with the fence may renew',
    "if fence ~= ARGV[2] then return { fence + 0 < ARGV[2] + 0 and 'accepted' or 'superseded', 0, 0 } end",
    '',
  ],
  [
    'a grant is no more than there is',
    'if left < required then return math.max(0, math.min(required, left + overdraft)) end',
    'if left < required then return required end',
  ],
  ['what is asked ahead of need takes a small part of what is left', 'math.floor(left / SHARE)', 'left'],
  ['a charge takes no more than there is', 'if cost > most then', 'if false then'],
  ['only the delivery with the fence may finish', 'if known_fence and known_fence ~= fence then', 'if false then'],
  [
    'a request ends once',
    "if state == 'done' then return charged and 'charged ' .. charged or ended end\nif state ~= 'running' then return state or 'missing' end",
    '',
  ],
  ['an end gives the hold back', 'number_of(all_held) - held)', 'number_of(all_held))'],
  ['a cancel ends an accepted request only', "if state ~= 'accepted' then return state end", ''],
  ['only a higher version of the book replaces a lower one', 'if tonumber(ARGV[1]) > version then', 'if true then'],
  [
    'a charge that is settled twice is taken from pending once',
    'if charge then\n',
    'charge = charge or "7:1:1"\n  do\n',
  ],
];

describe('a script without its guard is found out:', () => {
  it.each(GUARDS)('%s', async (_guard, text, without) => {
    let found = false;
    const result = await explore((lua) => {
      found ||= lua.includes(text);
      return lua.replace(text, without);
    });

    expect(found).toBe(true);
    expect(result.failed).toBe(true);
  });
});
