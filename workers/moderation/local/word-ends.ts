import { NEWLINE_GAP, SPACE_GAP } from './characters.ts';
import { GAPS, LETTER, READABLE, UNKNOWN } from './lexicon.ts';

/**
 * True if two adjacent letters or digits follow a gap, so that no word of single letters («k i l l») continues after
 * it. False at the end of the text, where this cannot be known.
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

/** True if a plain word ends here: some words continue after a dot («k.i.l.l»), single letters after a space. */
export function endsWord(kinds: Uint8Array, units: Uint16Array, start: number, end: number): boolean {
  if (end + 2 >= units.length) return false;
  const kind = kindAt(kinds, units, end);
  if (end - start === 1) return isWhiteSpace(kind) && isPlainWordBehind(kinds, units, end);
  return isWhiteSpace(kind) || (kind >= GAPS && kind < GAPS + READABLE && isWhiteSpace(kindAt(kinds, units, end + 1)));
}

/** True of a symbol between spaces that may be a letter: no ASCII symbol is a word, only guessed to be a letter. */
export function standsAlone(kinds: Uint8Array, units: Uint16Array, at: number): boolean {
  return (
    at + 3 < units.length &&
    (units[at] ?? 0) < 0x80 &&
    isWhiteSpace(kindAt(kinds, units, at + 1)) &&
    isPlainWordBehind(kinds, units, at + 1)
  );
}
