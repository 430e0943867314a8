import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from '@jest/globals';

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'docs', 'decisions');
const read = (file: string) => readFileSync(join(FOLDER, file), 'utf8');
const pages = readdirSync(FOLDER).filter((file) => /^\d{4}-/.test(file));

it('gives no number to two decisions', () => {
  expect(new Set(pages.map((file) => file.slice(0, 4))).size).toBe(pages.length);
});

it.each(pages)('the decision %s has a date, a status, alternatives and its line in the index', (file) => {
  const text = read(file);

  expect(text).toMatch(/^Accepted on \d{4}-\d{2}-\d{2}\.$/m);
  expect(text).toMatch(/alternative/i);
  expect(read('README.md')).toContain(`\n- [${file.slice(0, 4)}](${file}) `);
});
