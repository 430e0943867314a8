/**
 * `node scripts/check-citations.ts`: every `docs/….md#anchor` in comments and pages, every relative link and anchor of a
 * page, and every test that docs/security.md names must lead somewhere. Exit code 1 if one does not.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

import { ROOT } from './harness/program.ts';

const FOLDERS = ['api', 'docs', 'scripts', 'shared', 'test', 'workers'];
const READ = /\.(?:ts|mjs|js|cjs|lua|md|example|yml)$/u;

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && READ.test(entry.name) && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1));
}

/** A citation or link that leads nowhere. */
export interface Broken {
  file: string;
  line: number;
  problem: string;
}

/** The check reads nothing else: texts by path from the root, and whether any other path exists. */
export interface Tree {
  texts: ReadonlyMap<string, string>;
  exists: (path: string) => boolean;
}

/** `docs/….md` or `docs/….md#anchor`. */
const CITATION = /\b(docs\/[\w/.-]+\.md)\b(?:#([\w-]*\w))?/gu;
const LINK = /!?\[(?:[^\]\\]|\\.)*\]\(([^()\s]+(?:\([^()\s]*\))?)\)/gu;
const HEADING = /^#{1,6} +(.+?) *$/gmu;
const ANCHOR = /<a id="([^"]+)">/gu;
/** A test in docs/security.md: its path below `test/`, without `.test.ts`. */
const TEST = /`((?:api|e2e|guide|integration|model|unit)\/[\w./-]+)`/gu;
const EXTERNAL = /^[a-z]+:/iu;

/** Blanks out code, because links and headings in it are examples. Everything else keeps its line. */
function withoutCode(markdown: string): string {
  const blank = (text: string) => text.replace(/[^\n]/gu, ' ');
  return markdown.replace(/^ *(```|~~~)[\s\S]*?^ *\1 *$/gmu, blank).replace(/(`+)(?!`)[^\n]*?[^`\n]\1(?!`)/gu, blank);
}

/** The anchor that GitHub generates for a heading. */
function slugOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/gu, '$1')
    .replace(/[`*]/gu, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/gu, '-');
}

function headingsOf(markdown: string): string[] {
  // Inline code stays, because it is part of a heading's anchor.
  const text = markdown.replace(/^ *(```|~~~)[\s\S]*?^ *\1 *$/gmu, '');
  return Array.from(text.matchAll(HEADING), (match) => match[1] ?? '');
}

export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set(Array.from(markdown.matchAll(ANCHOR), (match) => match[1] ?? ''));
  const seen = new Map<string, number>();
  for (const slug of headingsOf(markdown).map(slugOf)) {
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    anchors.add(before === 0 ? slug : `${slug}-${before}`);
  }
  return anchors;
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

function brokenCitations(file: string, text: string, { texts, exists }: Tree): Broken[] {
  return Array.from(text.matchAll(CITATION)).flatMap(({ 1: path = '', 2: anchor, index }) => {
    const line = lineAt(text, index);
    if (!exists(path)) return [{ file, line, problem: `${path} does not exist` }];
    if (anchor === undefined || anchorsOf(texts.get(path) ?? '').has(anchor)) return [];
    return [{ file, line, problem: `${path}#${anchor}: no such anchor` }];
  });
}

function brokenLinks(file: string, text: string, { texts, exists }: Tree): Broken[] {
  const prose = withoutCode(text);
  return Array.from(prose.matchAll(LINK)).flatMap((match) => {
    const target = match[1] ?? '';
    if (EXTERNAL.test(target)) return [];
    const [path = '', anchor] = target.split('#');
    const found = path === '' ? file : normalize(join(dirname(file), decodeURIComponent(path)));
    const line = lineAt(prose, match.index);
    if (!exists(found)) return [{ file, line, problem: `${target}: ${found} does not exist` }];
    if (anchor === undefined || !found.endsWith('.md')) return [];
    if (anchorsOf(texts.get(found) ?? '').has(anchor)) return [];
    return [{ file, line, problem: `${target}: no such anchor` }];
  });
}

function brokenTests(file: string, text: string, { exists }: Tree): Broken[] {
  return Array.from(text.matchAll(TEST)).flatMap(({ 1: name = '', index }) => {
    const path = `test/${name}.test.ts`;
    return exists(path) ? [] : [{ file, line: lineAt(text, index), problem: `${path} does not exist` }];
  });
}

/** Every citation, and every relative link of a page, that leads nowhere. */
export function findBroken(tree: Tree): Broken[] {
  return Array.from(tree.texts).flatMap(([file, text]) => [
    ...(file.endsWith('.md') ? brokenLinks(file, text, tree) : []),
    ...brokenCitations(file, text, tree),
    ...(file === 'docs/security.md' ? brokenTests(file, text, tree) : []),
  ]);
}

if (import.meta.main) {
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
}
