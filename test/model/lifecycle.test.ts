import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { ALL_GUARDS } from './lifecycle.ts';
import type { Guards } from './lifecycle.ts';
import { brokenPromises } from './broken-promises.ts';
import { ACTORS, comeToRest, createFleet, step } from './simulated-fleet.ts';
import type { Actor, Fault } from './simulated-fleet.ts';

const SEED = 20_261_121;
const INTERLEAVINGS = 10_000;

const choice = fc.record({
  actor: fc.constantFrom(...ACTORS),
  fault: fc.oneof(
    { weight: 6, arbitrary: fc.constant<Fault>('none') },
    fc.constantFrom<Fault>('crash', 'lostAnswer', 'providerFailed'),
  ),
});
const interleaving = fc.array(choice, { minLength: 5, maxLength: 40 });

function run(choices: readonly { actor: Actor; fault: Fault }[], guards: Guards): string[] {
  const fleet = createFleet();
  for (const { actor, fault } of choices) step(fleet, actor, fault, guards);
  comeToRest(fleet, guards);
  return brokenPromises(fleet);
}

function explore(guards: Guards) {
  return fc.check(
    fc.property(interleaving, (choices) => run(choices, guards).length === 0),
    { seed: SEED, numRuns: INTERLEAVINGS },
  );
}

describe('the life of a request', () => {
  it('keeps every promise under 10,000 interleavings of deliveries, crashes, lost answers, cancels and sweeps', () => {
    const result = explore(ALL_GUARDS);
    const broken = result.counterexample === null ? [] : run(result.counterexample[0], ALL_GUARDS);
    expect(broken).toEqual([]);
    expect(result.numRuns).toBe(INTERLEAVINGS);
  });

  it.each(Object.keys(ALL_GUARDS) as (keyof Guards)[])('the life of a request breaks a promise without %s', (guard) => {
    expect(explore({ ...ALL_GUARDS, [guard]: false }).failed).toBe(true);
  });
});
