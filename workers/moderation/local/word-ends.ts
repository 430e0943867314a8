import { ALPHABET_SIZE, NEWLINE_GAP, SPACE_GAP } from './characters.ts';
import { GAPS, LETTER, READABLE, UNKNOWN } from './lexicon.ts';

/**
 * Whether two adjacent letters or digits follow a gap, so that no word of single letters («k i l l») continues after
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

/** Whether a plain word ends here: some words continue after a dot («k.i.l.l»), single letters after a space. */
export function endsWord(kinds: Uint8Array, units: Uint16Array, start: number, end: number): boolean {
  if (end + 2 >= units.length) return false;
  const kind = kindAt(kinds, units, end);
  if (end - start === 1) return isWhiteSpace(kind) && isPlainWordBehind(kinds, units, end);
  return isWhiteSpace(kind) || (kind >= GAPS && kind < GAPS + READABLE && isWhiteSpace(kindAt(kinds, units, end + 1)));
}

/** How many adjacent gaps are looked at, as in `","`. */
const GAPS_MAX = 4;

/**
 * Whether a word ends at the gaps that follow it, as in tables: after them comes white space, or a letter with which no
 * word continues from `node` or `single` (the node if a doubled letter is read as one).
 */
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

/** A symbol that may be a letter, between spaces. No ASCII symbol is a word: it is only guessed to be a letter. */
export function standsAlone(kinds: Uint8Array, units: Uint16Array, at: number): boolean {
  return (
    at + 3 < units.length &&
    (units[at] ?? 0) < 0x80 &&
    isWhiteSpace(kindAt(kinds, units, at + 1)) &&
    isPlainWordBehind(kinds, units, at + 1)
  );
}
