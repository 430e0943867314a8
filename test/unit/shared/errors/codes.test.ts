import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from '@jest/globals';

import { ROOT } from '../../../../scripts/harness/program.ts';
import { ERRORS, isErrorCode } from '../../../../shared/errors/codes.ts';

/** The section of the page that lists every code (docs/spec.md#codes). */
const SECTION = /^### Codes\n[\s\S]*?(?=^###? )/mu.exec(readFileSync(join(ROOT, 'docs/spec.md'), 'utf8'))?.[0] ?? '';
/** A row of the table of codes, and a code with its status in the sentence below it. */
const CODE = /`([a-z_]+)` +(?:\| +)?(\d{3})\b/gu;
/** A row of the table of types: the statuses and their type. */
const TYPE = /^\| ([\d, ]+?) +\| `([a-z_]+)`/gmu;

const typeOf = new Map(
  Array.from(SECTION.matchAll(TYPE)).flatMap(([, statuses = '', type]) =>
    statuses.split(', ').map((status) => [Number(status), type]),
  ),
);
const DOCUMENTED = Object.fromEntries(
  Array.from(SECTION.matchAll(CODE), ([, code = '', status]) => [code, [Number(status), typeOf.get(Number(status))]]),
);

describe('the error table', () => {
  it('has the codes of the specification, with their status and type', () => {
    const table = Object.fromEntries(Object.entries(ERRORS).map(([code, { status, type }]) => [code, [status, type]]));

    expect(table).toEqual(DOCUMENTED);
  });

  it('knows its codes from names that every object has', () => {
    expect(isErrorCode('timeout')).toBe(true);
    expect(['toString', '__proto__', 'constructor', ''].filter(isErrorCode)).toEqual([]);
  });
});
