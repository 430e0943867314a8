import { readFileSync } from 'node:fs';

import { MODERATION_CATEGORIES } from '../moderator.ts';
import type { ModerationCategory } from '../moderator.ts';

export interface PhraseGroup {
  /** Empty: the phrases are harmless, and a match is dropped if it lies within one of them and ends with it. */
  readonly categories: readonly ModerationCategory[];
  /** 0 to 1. */
  readonly score: number;
  /** The score when the text hides the phrase (`b0mb`, `b o m b`): hiding a phrase shows intent. Default: `score`. */
  readonly disguisedScore?: number;
  /** In the notation of phrase-syntax.ts. */
  readonly phrases: readonly string[];
}

export type PhraseLists = ReturnType<typeof readPhraseLists>;

/** One file each in phrases/, in the order in which their groups are compiled. */
const LISTS = ['hate', 'harassment', 'self-harm', 'sexual', 'violence', 'illicit-violent', 'illicit'];

/** The default threshold is 0.5, so mild phrases flag only for tenants who ask for it. */
const SCORES: Readonly<Record<string, number>> = { certain: 0.95, clear: 0.8, likely: 0.6, mild: 0.4 };

/** Harmless but always flagged, so that an operator can test the whole path. */
const TEST_GROUP: PhraseGroup = { categories: ['test'], score: 1, phrases: ['parley moderation test'] };

const HEADER = /^@ (?:harmless|([a-z/ -]+): ([a-z]+)(?:, disguised ([a-z]+))?)$/;
const DEFINITION = /^(\$[a-z-]+|<[a-z-]+>) = (.+)$/;
const ABBREVIATION = /\$[a-z-]+/g;

interface Line {
  text: string;
  number: number;
}

/** The lines with content; a line that begins with white space continues the one before it. */
function linesOf(source: string): Line[] {
  const lines: Line[] = [];
  source.split('\n').forEach((raw, index) => {
    const last = lines.at(-1);
    if (raw.trim() === '' || raw.startsWith('#')) return;
    if (/^\s/.test(raw) && last !== undefined) last.text += raw.trim();
    else lines.push({ text: raw.trimEnd(), number: index + 1 });
  });
  return lines;
}

function isCategory(name: string): name is ModerationCategory {
  return (MODERATION_CATEGORIES as readonly string[]).includes(name);
}

/**
 * Reads one list. Apart from blank lines and comments (`#`), its lines are
 *
 * - `$name = text`: an abbreviation for this file, expanded wherever `$name` occurs,
 * - `@ category category: certain`, with `, disguised mild` or without: the head of a group; or `@ harmless`,
 * - a phrase of the group above it.
 *
 * Throws on anything else, such as an unknown category, score or abbreviation; the error names list and line.
 */
export function parsePhraseList(name: string, source: string): PhraseGroup[] {
  const groups: (PhraseGroup & { phrases: string[] })[] = [];
  const abbreviations = new Map<string, string>();

  for (const { text, number } of linesOf(source)) {
    const fail = (problem: string): never => {
      throw new Error(`phrases/${name}.txt, line ${number}: ${problem}`);
    };
    const scoreOf = (word: string): number => SCORES[word] ?? fail(`there is no score '${word}'`);
    const expand = (phrase: string): string =>
      phrase.replace(ABBREVIATION, (used) => abbreviations.get(used) ?? fail(`there is no ${used}`));

    if (text.startsWith('@')) {
      const [head, categories = '', score, disguised] = HEADER.exec(text) ?? [];
      if (head === undefined) fail('a group begins with @ CATEGORIES: SCORE, or @ harmless');
      groups.push({
        categories: categories
          .split(' ')
          .filter((category) => category !== '')
          .map((category) => (isCategory(category) ? category : fail(`there is no category '${category}'`))),
        score: score === undefined ? 0 : scoreOf(score),
        ...(disguised === undefined ? {} : { disguisedScore: scoreOf(disguised) }),
        phrases: [],
      });
    } else if (text.startsWith('$') && DEFINITION.test(text)) {
      const [, abbreviation = '', meaning = ''] = DEFINITION.exec(text) ?? [];
      abbreviations.set(abbreviation, expand(meaning));
    } else {
      (groups.at(-1) ?? fail('a phrase needs a group above it')).phrases.push(expand(text));
    }
  }
  return groups;
}

/** Reads the terms: `<name> = alternatives`. Throws on anything else; the error names the line. */
export function parseTerms(source: string): Record<string, string> {
  const terms: Record<string, string> = {};
  for (const { text, number } of linesOf(source)) {
    const [, name = '', meaning = ''] = DEFINITION.exec(text) ?? [];
    if (!name.startsWith('<')) throw new Error(`phrases/terms.txt, line ${number}: a term is <NAME> = ALTERNATIVES`);
    terms[name.slice(1, -1)] = meaning;
  }
  return terms;
}

function read(name: string): string {
  return readFileSync(new URL(`./phrases/${name}.txt`, import.meta.url), 'utf8');
}

/** Reads all lists of the local backend. English only: for other languages use a remote backend. */
export function readPhraseLists() {
  return {
    groups: [TEST_GROUP, ...LISTS.flatMap((name) => parsePhraseList(name, read(name)))],
    /** Name → alternatives, as phrases refer to them by `<name>`. */
    terms: parseTerms(read('terms')),
  };
}
