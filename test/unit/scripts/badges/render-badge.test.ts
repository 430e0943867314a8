import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from '@jest/globals';

import { badges, renderBadge } from '../../../../scripts/badges/render-badge.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..', '..');
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Parameters<typeof badges>[0];
const drawn = badges(manifest).map((badge) => [badge.name, badge] as const);

it.each(drawn)('the badge %s in docs/assets says what is true (node scripts/badges.ts)', (name, badge) => {
  expect(readFileSync(join(ROOT, 'docs', 'assets', `badge-${name}.svg`), 'utf8')).toBe(renderBadge(badge));
});

it.each(drawn)('the README shows the badge %s', (name) => {
  expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toContain(`docs/assets/badge-${name}.svg`);
});
