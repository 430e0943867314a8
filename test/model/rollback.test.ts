import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { ROLLBACK_ACTORS, ROLLBACK_GUARDS, brokenByRollback, createRollbackFleet, stepRollback } from './rollback.ts';
import type { RollbackActor, RollbackGuards } from './rollback.ts';

const SEED = 20_261_122;
const INTERLEAVINGS = 10_000;

const choice = fc.record({ actor: fc.constantFrom(...ROLLBACK_ACTORS), back: fc.nat(6) });
const interleaving = fc.array(choice, { minLength: 5, maxLength: 30 });

function run(choices: readonly { actor: RollbackActor; back: number }[], guards: RollbackGuards): string[] {
  const fleet = createRollbackFleet();
  for (const { actor, back } of choices) stepRollback(fleet, actor, back, guards);
  return brokenByRollback(fleet, guards);
}

function explore(guards: RollbackGuards) {
  return fc.check(
    fc.property(interleaving, (choices) => run(choices, guards).length === 0),
    { seed: SEED, numRuns: INTERLEAVINGS },
  );
}

describe('a Redis that comes back without its last writes', () => {
  it('breaks no promise under 10,000 interleavings of two deliveries, a reader and rollbacks', () => {
    const result = explore(ROLLBACK_GUARDS);
    const broken = result.counterexample === null ? [] : run(result.counterexample[0], ROLLBACK_GUARDS);
    expect([broken, result.counterexample]).toEqual([[], null]);
    expect(result.numRuns).toBe(INTERLEAVINGS);
  });

  it.each(Object.keys(ROLLBACK_GUARDS) as (keyof RollbackGuards)[])('breaks a promise without %s', (guard) => {
    expect(explore({ ...ROLLBACK_GUARDS, [guard]: false }).failed).toBe(true);
  });
});
