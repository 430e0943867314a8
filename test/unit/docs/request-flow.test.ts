import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { expect, it } from '@jest/globals';

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'architecture', 'request-flow.md');

it('the page of the request flow counts its files and folders as they are', () => {
  const text = readFileSync(PAGE, 'utf8');
  const files = Array.from(text.matchAll(/^- \[(\S+)\]\(/gm), ([, file = '']) => file);

  expect(new Set(files).size).toBe(files.length);
  expect(text).toContain(`${files.length} files in ${new Set(files.map(dirname)).size} folders`);
});
