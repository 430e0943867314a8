/**
 * `npm run house`: counts what makes the code hard to find one's way in, and fails above a limit.
 *
 * A limit of form is only ever lowered: a change that brings a figure down takes its limit down with it, until it is the
 * goal. A limit of size (lines, words, packages) may rise by what a capability needs, and its commit says so.
 * Raising one needs a review of the whole table, never a larger number beside the file that did not fit.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

import ts from 'typescript';

import { ROOT } from './harness/program.ts';

const FLOW = 'docs/architecture/request-flow.md';

/** Figure → highest allowed, and where it is to go. */
const LIMITS = {
  'files of a chat request': { limit: 56, goal: 46 },
  'folders of a chat request': { limit: 16, goal: 12 },
  'further files that these import for values': { limit: 60, goal: 60 },
  'product files': { limit: 417, goal: 440 },
  'product folders': { limit: 63, goal: 68 },
  'folders of one file': { limit: 1, goal: 2 },
  'product lines': { limit: 60_452, goal: 48_000 },
  'code lines (no blanks, comments, imports)': { limit: 43_895, goal: 34_500 },
  'functions over 80 lines': { limit: 0, goal: 10 },
  'functions over 50 lines': { limit: 66, goal: 70 },
  'files under 40 lines with one importer': { limit: 0, goal: 0 },
  'cycles of imports': { limit: 0, goal: 0 },
  'product files that no process imports': { limit: 0, goal: 0 },
  'pairs of folders that import each other': { limit: 7, goal: 10 },
  'interfaces with one factory': { limit: 15, goal: 26 },
  'uses of Pick': { limit: 144, goal: 150 },
  'comments that begin with What, Who, Nothing, Nobody, As': { limit: 0, goal: 40 },
  decisions: { limit: 25, goal: 25 },
  'words of Markdown': { limit: 45_000, goal: 45_000 },
  'words of the README': { limit: 890, goal: 900 },
  'lines of scripts': { limit: 9_645, goal: 8_000 },
  'lines of tests': { limit: 74_072, goal: 60_000 },
  'npm packages (without those of one platform)': { limit: 598, goal: 600 },
};
type Figure = keyof typeof LIMITS;

interface Import {
  to: string;
  isType: boolean;
}
interface Source {
  file: string;
  imports: Import[];
  importLines: number;
  functionLengths: number[];
  interfaces: string[];
  /** The types that `createX`, `openX` and `watchX` return. */
  made: string[];
}

const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT })
  .toString()
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(ROOT, file)));
const texts = new Map<string, string>();

function textOf(file: string): string {
  const text = texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8');
  texts.set(file, text);
  return text;
}

const countIn = (files: string[], pattern: RegExp): number =>
  files.reduce((total, file) => total + Array.from(textOf(file).matchAll(pattern)).length, 0);
const linesOf = (files: string[]): number => countIn(files, /\n/gu);
const wordsOf = (files: string[]): number => countIn(files, /\S+/gu);
const below = (folders: RegExp): string[] => tracked.filter((file) => folders.test(file));

function isTypeOnly(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const names = clause.namedBindings;
  return (
    clause.name === undefined &&
    names !== undefined &&
    ts.isNamedImports(names) &&
    names.elements.every((name) => name.isTypeOnly)
  );
}

/** Lines that hold more than a comment and are not part of an import, which `skipped` counts. */
function countCode(file: string, skipped: number): number {
  const bare = file.endsWith('.lua')
    ? textOf(file).replace(/^\s*--.*$/gmu, '')
    : textOf(file).replace(/^\s*(?:\/\/.*$|\/\*[\s\S]*?\*\/)/gmu, '');
  return bare.split('\n').filter((line) => line.trim() !== '').length - skipped;
}

function isFunction(node: ts.Node): boolean {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isConstructorDeclaration(node)
  );
}

function readSource(file: string): Source {
  const tree = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
  const heightOf = (node: ts.Node) =>
    tree.getLineAndCharacterOfPosition(node.end).line - tree.getLineAndCharacterOfPosition(node.getStart()).line + 1;
  const source: Source = { file, imports: [], importLines: 0, functionLengths: [], interfaces: [], made: [] };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      source.importLines += heightOf(node);
      const { text } = node.moduleSpecifier;
      const to = normalize(join(dirname(file), text));
      if (text.startsWith('.')) source.imports.push({ to, isType: isTypeOnly(node.importClause) });
    }
    if (ts.isInterfaceDeclaration(node)) source.interfaces.push(node.name.text);
    if (isFunction(node)) source.functionLengths.push(heightOf(node));
    if (ts.isFunctionDeclaration(node) && /^(?:create|open|watch)[A-Z]/u.test(node.name?.text ?? '')) {
      const returned = /^(?:Promise<)?(\w+)/u.exec(node.type?.getText() ?? '')?.[1];
      if (returned !== undefined) source.made.push(returned);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return source;
}

/** `api/app.ts` and `api/endpoints.ts` list every resource, so that their imports say nothing about a chat request. */
const LISTS = ['api/app.ts', 'api/endpoints.ts'];

/** A plain request passes through the files of the lists and of the `Behind:` lines; those `Aside:` run for others only. */
function measureFlow(sources: Source[]): Partial<Record<Figure, number>> {
  const names = textOf(FLOW).match(/(?<=^- \[)[^\]]+|(?<=^Behind: .*`)[^`\s]+\.(?:ts|lua)(?=`)/gmu) ?? [];
  const path = names.map((name) => {
    const [file, other] = product.filter((candidate) => `/${candidate}`.endsWith(`/${name}`));
    if (file === undefined || other !== undefined) throw new Error(`${FLOW}: not one file is ${name}`);
    return file;
  });
  const stops = new Set(path);
  const size = `${stops.size} files in ${new Set(path.map(dirname)).size} folders`;
  if (!textOf(FLOW).includes(size)) throw new Error(`${FLOW} has to say: ${size}`);
  const further = sources
    .filter(({ file }) => stops.has(file) && !LISTS.includes(file))
    .flatMap(({ imports }) => imports.filter(({ to, isType }) => !isType && !stops.has(to)).map(({ to }) => to));
  return {
    'files of a chat request': stops.size,
    'folders of a chat request': new Set(path.map(dirname)).size,
    'further files that these import for values': new Set(further).size,
  };
}

function measureImports(sources: Source[]): Partial<Record<Figure, number>> {
  const importers = new Map<string, number>();
  const arrows = new Set<string>();
  for (const { file, imports } of sources) {
    for (const to of new Set(imports.map((one) => one.to))) {
      importers.set(to, (importers.get(to) ?? 0) + 1);
      if (dirname(file) !== dirname(to)) arrows.add(`${dirname(file)} ${dirname(to)}`);
    }
  }
  const isMutual = (arrow: string) => arrows.has(arrow.split(' ').reverse().join(' '));
  return {
    'files under 40 lines with one importer': sources.filter(
      ({ file }) => linesOf([file]) < 40 && importers.get(file) === 1,
    ).length,
    'pairs of folders that import each other': Array.from(arrows).filter(isMutual).length / 2,
  };
}

/** Imports of all files, type-only ones included: their cycles, and the product that no `main.ts` reaches. */
function measureGraph(): Partial<Record<Figure, number>> {
  const reached = new Set<string>();
  let cycles = 0;
  const follow = (file: string, path: string[]): void => {
    if (path.includes(file)) {
      cycles += 1;
      console.error(`Cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`);
    }
    if (reached.has(file) || !tracked.includes(file)) return;
    reached.add(file);
    for (const { fileName } of ts.preProcessFile(textOf(file)).importedFiles)
      if (fileName.startsWith('.')) follow(join(dirname(file), fileName), [...path, file]);
  };
  for (const main of ['api/main.ts', 'workers/main.ts']) follow(main, []);
  const unreached = product.filter((file) => file.endsWith('.ts') && !reached.has(file));
  for (const file of unreached) console.error(`No process imports ${file}`);
  for (const file of below(/^(?:api|workers|shared|scripts|test)\/.*\.(?:ts|mjs)$/u)) follow(file, []);
  return { 'cycles of imports': cycles, 'product files that no process imports': unreached.length };
}

function measureCode(product: string[], sources: Source[]): Partial<Record<Figure, number>> {
  const inFolder = Map.groupBy(product, dirname);
  const importLines = new Map(sources.map((source) => [source.file, source.importLines]));
  const interfaces = new Set(sources.flatMap((source) => source.interfaces));
  const made = Map.groupBy(
    sources.flatMap((source) => source.made),
    (name) => name,
  );
  const longerThan = (lines: number) =>
    sources.flatMap(({ functionLengths }) => functionLengths).filter((length) => length > lines).length;
  return {
    'product files': product.length,
    'product folders': inFolder.size,
    'folders of one file': Array.from(inFolder.values()).filter((files) => files.length === 1).length,
    'product lines': linesOf(product),
    'code lines (no blanks, comments, imports)': product.reduce(
      (total, file) => total + countCode(file, importLines.get(file) ?? 0),
      0,
    ),
    'functions over 80 lines': longerThan(80),
    'functions over 50 lines': longerThan(50),
    'interfaces with one factory': Array.from(made).filter(([name, all]) => all.length === 1 && interfaces.has(name))
      .length,
    'uses of Pick': countIn(product, /\bPick</gu),
    'comments that begin with What, Who, Nothing, Nobody, As': countIn(
      product,
      /^\s*(?:\/\*\*?|\/\/|--)\s*(?:What|Who|Nothing|Nobody|As)\b/gmu,
    ),
  };
}

function measureRest(): Partial<Record<Figure, number>> {
  const lock = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, { os?: unknown; cpu?: unknown }> };
  return {
    decisions: below(/^docs\/decisions\/\d/u).length,
    'words of Markdown': wordsOf(below(/\.md$/u)),
    'words of the README': wordsOf(['README.md']),
    'lines of scripts': linesOf(below(/^scripts\/.*(?<!\.d)\.(?:ts|mjs)$/u)),
    'lines of tests': linesOf(below(/^test\/.*\.ts$/u)),
    'npm packages (without those of one platform)':
      Object.values(lock.packages).filter(({ os, cpu }) => os === undefined && cpu === undefined).length - 1,
  };
}

const product = below(/^(?:api|workers|shared)\/.*\.(?:ts|lua)$/u);
const sources = product.filter((file) => file.endsWith('.ts')).map(readSource);
const figures = new Map<string, number | undefined>(
  Object.entries({
    ...measureFlow(sources),
    ...measureImports(sources),
    ...measureGraph(),
    ...measureCode(product, sources),
    ...measureRest(),
  }),
);
const show = (value: number) => value.toLocaleString('en').padStart(9);
console.log(`${'figure'.padEnd(58)}${['now', 'limit', 'goal'].map((title) => title.padStart(9)).join('')}`);
for (const [name, { limit, goal }] of Object.entries(LIMITS)) {
  const figure = figures.get(name) ?? NaN;
  const isOver = !(figure <= limit);
  const remark = isOver ? '  OVER THE LIMIT' : figure < limit * 0.98 ? '  lower the limit' : '';
  console.log(`${name.padEnd(58)}${[figure, limit, goal].map(show).join('')}${remark}`);
  if (isOver) process.exitCode = 1;
}
