import { ALPHABET_SIZE, NEWLINE_GAP, SPACE_GAP } from './characters.ts';
import { GAPS, LETTER, READABLE, UNKNOWN } from './lexicon.ts';

/**
 * Behind a gap two letters or digits side by side, however they are read: neither belongs to a word of single letters.
 * False at the end of the text.
 */
export function isPlainWordBehind(kinds: Uint8Array, units: Uint16Array, gap: number): boolean {
  if (gap + 2 >= units.length) return false;
  return kindAt(kinds, units, gap + 1) <= LETTER && kindAt(kinds, units, gap + 2) <= LETTER;
}

export function isWhiteSpace(kind: number): boolean {
  return kind === GAPS + SPACE_GAP || kind === GAPS + NEWLINE_GAP;
}

export function kindAt(kinds: Uint8Array, units: Uint16Array, at: number): number {
  return kinds[units[at] ?? 0] ?? UNKNOWN;
}

/** Whether a word of plain letters is over for good: some go on behind a dot, and single letters behind a space. */
export function endsWord(kinds: Uint8Array, units: Uint16Array, start: number, end: number): boolean {
  if (end + 2 >= units.length) return false;
  const kind = kindAt(kinds, units, end);
  if (end - start === 1) return isWhiteSpace(kind) && isPlainWordBehind(kinds, units, end);
  return isWhiteSpace(kind) || (kind >= GAPS && kind < GAPS + READABLE && isWhiteSpace(kindAt(kinds, units, end + 1)));
}

/** Gaps side by side, as in `","`. */
const GAPS_MAX = 4;

/** Whether a word is over at gaps with a letter behind them by which neither of its readings goes on, as in tables. */
export function endsAtGap(
  kinds: Uint8Array,
  table: Uint16Array,
  node: number,
  single: number,
  units: Uint16Array,
  end: number,
): boolean {
  for (let at = end; at < end + GAPS_MAX && at + 1 < units.length; at += 1) {
    const kind = kindAt(kinds, units, at);
    if (isWhiteSpace(kind)) return true;
    if (kind < ALPHABET_SIZE && at > end)
      return [node, single].every((reading) => reading === 0 || table[reading * ALPHABET_SIZE + kind] === 0);
    if (kind < GAPS || kind >= GAPS + READABLE) return false;
  }
  return false;
}

/** A symbol that may be a letter, with spaces on both sides. No ASCII symbol is a word, as it is a letter by guess only. */
export function standsAlone(kinds: Uint8Array, units: Uint16Array, at: number): boolean {
  return (
    at + 3 < units.length &&
    (units[at] ?? 0) < 0x80 &&
    isWhiteSpace(kindAt(kinds, units, at + 1)) &&
    isPlainWordBehind(kinds, units, at + 1)
  );
}
