import { resolveConfusablesTransformer, resolveLeetSpeakTransformer, toAsciiLowerCaseTransformer } from 'obscenity';

/**
 * Says what the scanner can read a character as: letters, a kind of gap, or both (`$` ends a word and stands for an s).
 * The tables of look-alikes are those of the `obscenity` library. Its matcher is not used: it runs one regular
 * expression per phrase over the whole text (0.22 CPU-ms per 500 characters for its 119 phrases, measured; one scan for
 * all of ours takes 0.05), cannot continue with a stream's next piece, and takes one reading per character.
 */
export interface CharacterClass {
  readonly gap: number;
  /** Indexes into the alphabet. */
  readonly readings: readonly number[];
  /** Readings from this index on are a disguise. */
  readonly plain: number;
  /** Readings from this index on are a guess: `0` may be an o. A look-alike of a letter is not a guess. */
  readonly sure: number;
}

/** a-z, then 0-9. */
export const ALPHABET_SIZE = 36;

export const NO_GAP = 0;
/** Punctuation inside a word or between two: `k.i.l.l`, `pipe-bomb`. */
export const SOFT_GAP = 1;
export const SPACE_GAP = 2;
export const NEWLINE_GAP = 3;
/** Ends a sentence when white space follows. */
export const STOP_GAP = 4;
export const COLON_GAP = 5;
/** Combining marks and the like: read as if absent. */
export const IGNORED = 6;
/** Zero-width characters: read as if absent, but a disguise inside a word. */
export const INVISIBLE = 7;

const UNCLASSIFIED = 0;
/** Beyond this, Unicode has ideographs and tag characters, but nothing that looks like a letter. */
const TABLE_SIZE = 0x2_0000;
const NOTHING: CharacterClass = { gap: SOFT_GAP, readings: [], plain: 0, sure: 0 };
const TAG: CharacterClass = { ...NOTHING, gap: INVISIBLE };
const LOWER_A = 97;
const DIGIT_0 = 48;

const resolveConfusable = resolveConfusablesTransformer().transform;
const resolveLeet = resolveLeetSpeakTransformer().transform;
const toLowerCase = toAsciiLowerCaseTransformer().transform;

/** Hangul fillers: letters in Unicode, but invisible. */
const INVISIBLE_LETTERS = new Set([0x115f, 0x1160, 0x3164, 0xffa0]);
const INVISIBLE_CHARACTER = /\p{Cf}/u;
const MARK = /[\p{Mn}\p{Me}]/u;
const LETTER_OR_NUMBER = /[\p{L}\p{N}]/u;
/** Scripts written without spaces: a word of our lists may begin and end right beside their characters. */
const UNSPACED_SCRIPT = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;
const NEWLINES = new Set(['\n', '\r', '\u2028', '\u2029']);
const STOPS = new Set(['.', '!', '?', '...', '。', '!!', '??', '?!', '!?']);
const NO_READINGS: readonly number[] = [];
const PICTOGRAPH = /\p{Extended_Pictographic}/u;

export function alphabetIndex(codePoint: number): number {
  if (codePoint >= LOWER_A && codePoint < LOWER_A + 26) return codePoint - LOWER_A;
  if (codePoint >= DIGIT_0 && codePoint < DIGIT_0 + 10) return codePoint - DIGIT_0 + 26;
  return -1;
}

/** The library's table has `(` as c and `/` as l, but these stand between words far too often. */
const NEVER_LETTERS = new Set(['(', '/']);

const LETTER_I = alphabetIndex(0x69);
const LETTER_L = alphabetIndex(0x6c);
const PLAIN_I_AND_L = new Set(['i', 'l', 'L']);

/** Determines classes by code point on first sight, and keeps them: they never change. */
export class CharacterTable {
  private readonly classes: CharacterClass[] = [NOTHING];
  private readonly indexOfKey = new Map<string, number>();
  private readonly table = new Uint16Array(TABLE_SIZE);

  classOf(codePoint: number): CharacterClass {
    if (codePoint >= TABLE_SIZE) return isTag(codePoint) ? TAG : NOTHING;
    const index = this.table[codePoint] ?? UNCLASSIFIED;
    const known = this.classes[index === UNCLASSIFIED ? this.learn(codePoint) : index];
    if (known === undefined) throw new Error('The character table names a class that does not exist.');
    return known;
  }

  private learn(codePoint: number): number {
    const found = classify(codePoint);
    const key = `${found.gap} ${found.plain} ${found.sure} ${found.readings.join()}`;
    const index = this.indexOfKey.get(key) ?? this.classes.push(found) - 1;
    this.indexOfKey.set(key, index);
    this.table[codePoint] = index;
    return index;
  }
}

function isTag(codePoint: number): boolean {
  return codePoint >= 0xe_0000 && codePoint < 0xe_1000;
}

function classify(codePoint: number): CharacterClass {
  const text = String.fromCodePoint(codePoint);
  if (INVISIBLE_LETTERS.has(codePoint)) return { ...NOTHING, gap: INVISIBLE };
  if (LETTER_OR_NUMBER.test(text)) return classifyLetter(codePoint, text);
  if (INVISIBLE_CHARACTER.test(text)) return { ...NOTHING, gap: INVISIBLE };
  if (text.trim() === '') return { ...NOTHING, gap: NEWLINES.has(text) ? NEWLINE_GAP : SPACE_GAP };
  if (MARK.test(text)) return { ...NOTHING, gap: IGNORED };
  return classifySymbol(codePoint, text);
}

function classifyLetter(codePoint: number, text: string): CharacterClass {
  const readings = readingsOf(codePoint, text);
  if (readings.length === 0 && UNSPACED_SCRIPT.test(text)) return NOTHING;
  return { gap: NO_GAP, readings, plain: isPlain(text) ? 1 : 0, sure: 1 };
}

function classifySymbol(codePoint: number, text: string): CharacterClass {
  const compatible = text.normalize('NFKC');
  if (compatible === ':') return { ...NOTHING, gap: COLON_GAP };
  const gap = STOPS.has(compatible) ? STOP_GAP : SOFT_GAP;
  const readings = NEVER_LETTERS.has(compatible) ? NO_READINGS : readingsOf(codePoint, text);
  if (readings.length === 0) return { ...NOTHING, gap };
  // An ASCII symbol is only guessed to be a letter, a circled letter is nothing else, an emoji may be either.
  if (codePoint < 0x80) return { gap, readings, plain: 0, sure: 0 };
  return { gap: PICTOGRAPH.test(text) ? gap : NO_GAP, readings, plain: 0, sure: 1 };
}

/** ASCII characters are plain, and so are letters with an accent: some words are spelled with `é`. */
function isPlain(text: string): boolean {
  return (text.normalize('NFD').codePointAt(0) ?? 0) < 0x80;
}

/** The ASCII letter, digit or symbol that a character looks like, in lower case, or else the character itself. */
function resolve(codePoint: number, text: string): number {
  const confusable = resolveConfusable(codePoint) ?? codePoint;
  const looksLike = confusable < 0x80 ? confusable : (text.normalize('NFKD').codePointAt(0) ?? codePoint);
  return toLowerCase(looksLike) ?? looksLike;
}

function readingsOf(codePoint: number, text: string): readonly number[] {
  const base = resolve(codePoint, text);
  if (base >= 0x80) return NO_READINGS;
  const readings = new Set([alphabetIndex(base), alphabetIndex(resolveLeet(base) ?? base)]);
  readings.delete(-1);
  // 1, !, | and many look-alikes can stand for i or l, but the library chooses one. Capital I looks like l.
  if (!PLAIN_I_AND_L.has(text) && (readings.has(LETTER_I) || readings.has(LETTER_L))) {
    readings.add(readings.has(LETTER_I) ? LETTER_L : LETTER_I);
  }
  return [...readings];
}
