import { expect, it } from '@jest/globals';

import { hideName } from '../../../../shared/domain/pseudonyms.ts';

it.each([
  ['see the parents of e', 'e', 'see the parents of [x]'],
  ['line-1 line-10 1', '1', 'line-[x] line-10 [x]'],
  ['é e_1 e', 'e', 'é [x]_1 [x]'],
  ['a.b axb', 'a.b', '[x] axb'],
  ['$& (.) $&', '$&', '[x] (.) [x]'],
  ['\\ - [', '[', '\\ - [x]'],
  ['🦉🦉 🦉', '🦉', '[x][x] [x]'],
])('in %j the short name %j is hidden where it stands alone: %j', (text, name, hidden) => {
  expect(hideName(text, name, '[x]')).toBe(hidden);
});

it('a longer name is hidden wherever it stands', () => {
  expect(hideName('xpupil42y pupil42, pupil4', 'pupil42', '$&')).toBe('x$&y $&, pupil4');
});
