import { expect, it } from '@jest/globals';

import { parseFaultOptions } from '../../fault/options.ts';

const KNOWN = ['E1', 'E5b', 'E7', 'R1'];

it('runs everything once where nothing is named', () => {
  expect(parseFaultOptions([], KNOWN)).toEqual({ names: [], rounds: 1, minutes: 30, outageSeconds: 60 });
});

it('takes names in any case, a number of rounds and a time', () => {
  const args = ['e1', 'E5B', 'R1', '--rounds', '3', '--minutes', '5', '--outage', '600'];
  expect(parseFaultOptions(args, KNOWN)).toEqual({
    names: ['E1', 'E5b', 'R1'],
    rounds: 3,
    minutes: 5,
    outageSeconds: 600,
  });
});

it('names what it does not know', () => {
  expect(() => parseFaultOptions(['E99'], KNOWN)).toThrow('There is no experiment "E99"; there are E1, E5b, E7, R1.');
  expect(() => parseFaultOptions(['--rounds', '0'], KNOWN)).toThrow('--rounds must be a whole number');
  expect(() => parseFaultOptions(['--minutes', 'x'], KNOWN)).toThrow('--minutes must be a whole number');
});
