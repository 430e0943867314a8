import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from '@jest/globals';

import { ROOT } from '../../../../scripts/harness/program.ts';
import { ERRORS, isErrorCode } from '../../../../shared/errors/codes.ts';

/** The section of the page that lists every code (docs/spec.md#codes). */
const SECTION = /^### Codes\n[\s\S]*?(?=^###? )/mu.exec(readFileSync(join(ROOT, 'docs/spec.md'), 'utf8'))?.[0] ?? '';
const [CODES = '', TYPES = ''] = SECTION.split('The `type` follows');
/** A row of the table, or a code with its status in the sentence below it. */
const CODE = /`([a-z_]+)` +(?:\| +)?(\d{3})\b/gu;
const TYPE = /`([a-z_]+)` (\d{3})(?: and (\d{3}))?/gu;

const typeOf = new Map(
  Array.from(TYPES.matchAll(TYPE)).flatMap(([, type, ...statuses]) => statuses.map((status) => [status, type])),
);
const documented = Object.fromEntries(
  Array.from(CODES.matchAll(CODE), ([, code = '', status = '']) => [
    code,
    [Number(status), typeOf.get(status) ?? 'invalid_request_error'],
  ]),
);

describe('the error table', () => {
  it('has the codes of the specification, with their status and type', () => {
    const table = Object.fromEntries(Object.entries(ERRORS).map(([code, { status, type }]) => [code, [status, type]]));

    expect(table).toEqual(documented);
  });

  it('knows its codes from names that every object has', () => {
    expect(isErrorCode('timeout')).toBe(true);
    expect(['toString', '__proto__', 'constructor', ''].filter(isErrorCode)).toEqual([]);
  });
});
