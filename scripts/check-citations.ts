/**
 * `node scripts/check-citations.ts`: every `docs/….md#anchor` in comments and pages, and every relative link and
 * anchor of a page, must lead somewhere. Exit code 1 if one does not.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { findBroken } from './citations/find-broken.ts';
import { ROOT } from './harness/program.ts';

const FOLDERS = ['api', 'docs', 'scripts', 'shared', 'test', 'workers'];
const READ = /\.(?:ts|mjs|js|cjs|lua|md|example|yml)$/u;

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && READ.test(entry.name) && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1));
}

const atRoot = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isFile() && READ.test(entry.name))
  .map(({ name }) => name);
// The tests of this check cite things that do not exist.
const files = [...atRoot, ...FOLDERS.flatMap(filesBelow)].filter(
  (file) => !file.startsWith('test/unit/scripts/citations/'),
);
const texts = new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
const broken = findBroken({ texts, exists: (path) => existsSync(join(ROOT, path)) });

for (const { file, line, problem } of broken) console.error(`${file}:${line}: ${problem}`);
console.log(`${texts.size} files, ${broken.length} broken citations and links`);
process.exitCode = broken.length === 0 ? 0 : 1;
