import { expect, it } from '@jest/globals';

import { linkParts } from '../../../../shared/redis/scripts.ts';

const PART = `-- Of numbers.
local LIMIT = 5
local UNUSED = 6

local function least(number)
  return math.min(LIMIT, number)
end

local function unused()
  return UNUSED
end

-- @seldom
-- Only where it went wrong.
local function repair(number)
  return least(number) - 1
end
`;

function functionsOf(lua: string): string[] {
  return [...lua.matchAll(/^( *)local function (\w+)/gm)].map(([, indent, name]) => `${indent ?? ''}${name ?? ''}`);
}

it('leaves out what a script does not use, and all comments', () => {
  const lua = linkParts([PART], 'return least(7)\n');

  expect(lua).toBe(
    'local LIMIT = 5\nlocal function least(number)\n  return math.min(LIMIT, number)\nend\nreturn least(7)\n',
  );
});

it('makes what only a seldom function uses inside of it, in its own order', () => {
  const lua = linkParts([PART], 'if ARGV[1] then return repair(7) end\n');

  expect(lua.replaceAll(/\n(?=local function least|local LIMIT)/g, '\n')).toBe(
    [
      'local function repair(number)',
      'local LIMIT = 5',
      'local function least(number)',
      '  return math.min(LIMIT, number)',
      'end',
      '  return least(number) - 1',
      'end',
      'if ARGV[1] then return repair(7) end',
      '',
    ].join('\n'),
  );
});

it('makes once what others use as well, ahead of all of them', () => {
  const lua = linkParts([PART], 'return ARGV[1] and repair(7) or least(7)\n');

  expect(functionsOf(lua)).toEqual(['least', 'repair']);
});

it('takes a name between quotes for a word', () => {
  expect(functionsOf(linkParts([PART], "return redis.call('HGET', KEYS[1], 'least')\n"))).toEqual([]);
});

it('has a seldom function of the script itself hold what only that uses', () => {
  const body = '-- @seldom\n-- Asks.\nlocal function ask()\n  return least(7)\nend\nreturn ARGV[1] and ask()\n';

  expect(linkParts([PART], body).startsWith('local function ask()\nlocal LIMIT = 5\n')).toBe(true);
});
