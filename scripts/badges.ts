/** `node scripts/badges.ts`: draws the README's badges into docs/assets from the data in package.json. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { badges, renderBadge } from './badges/render-badge.ts';
import { ROOT } from './harness/program.ts';

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Parameters<typeof badges>[0];

for (const badge of badges(manifest)) {
  writeFileSync(join(ROOT, 'docs', 'assets', `badge-${badge.name}.svg`), renderBadge(badge));
}
