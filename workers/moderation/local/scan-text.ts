import { unitsOf } from '../text-units.ts';
import type { Lexicon } from './lexicon.ts';
import { TextScanner, type MatchListener } from './text-scanner.ts';

/** UTF-16 units of a line that are read at a time. */
const PIECE = 16_000;
const BREAKS = ['\n', '\r', '\u2028', '\u2029'];
const LINE_BREAKS = /[\n\r\u2028\u2029]/gu;

/** Finds the next line break, or the end of the text; must be called from left to right. */
function findBreaks(text: string): (from: number) => number {
  const nearest = BREAKS.map((lineBreak) => ({ lineBreak, at: -1 }));
  return (from) => {
    let next = text.length;
    for (const known of nearest) {
      if (known.at < from) {
        const found = text.indexOf(known.lineBreak, from);
        known.at = found < 0 ? Infinity : found;
      }
      next = Math.min(next, known.at);
    }
    return next;
  };
}

/** Ends at the line's end, or between two characters. */
function endOfPiece(text: string, from: number, lineEnd: number): number {
  const end = from + PIECE;
  if (end >= lineEnd) return lineEnd;
  return (text.codePointAt(end - 1) ?? 0) > 0xffff ? end - 1 : end;
}

export function addScores(scores: Record<string, number>, categories: readonly string[], score: number): void {
  for (const category of categories) scores[category] = Math.max(scores[category] ?? 0, score);
}

/** Reads a line break. True if it has ended an open phrase. */
function cutsPhrase(scanner: TextScanner, units: Uint16Array, text: string, at: number): boolean {
  if (scanner.quiet) {
    scanner.read(units, at, at + 1);
    return false;
  }
  // First a space, so that a full stop before the break ends the sentence, as it does in both readings.
  scanner.write(' ');
  const wasInPhrase = scanner.inPhrase;
  scanner.write(text.charAt(at));
  return wasInPhrase && !scanner.inPhrase;
}

/**
 * Scores a whole text, as it is and with its line breaks as spaces: an empty line ends a sentence for the scanner, but
 * not for a model. Yields the number of characters read, some thousands at most. The readings differ only at an empty
 * line while a phrase is open: a second scanner, rarely needed, then reads from the beginning of that paragraph until
 * no phrase is open any more.
 */
export function* scanText(lexicon: Lexicon, text: string, scores: Record<string, number>): Generator<number> {
  const listener: MatchListener = (match) => {
    addScores(scores, match.group.categories, match.score);
    return false;
  };
  const units = unitsOf(text);
  const scanner = new TextScanner(lexicon, listener);
  let across: TextScanner | undefined;
  let paragraph = 0;
  let lastBreakEnd = -1;

  const nextBreak = findBreaks(text);
  let read = 0;
  for (let at = 0; at < text.length;) {
    const lineEnd = nextBreak(at);
    if (lineEnd > at) {
      const end = endOfPiece(text, at, lineEnd);
      scanner.read(units, at, end);
      across?.read(units, at, end);
      read += end - at;
      at = end;
    } else {
      across?.write(' ');
      if (across !== undefined && across.heldFrom() >= across.length) across = undefined;
      const isCut = cutsPhrase(scanner, units, text, at);
      if (isCut && across === undefined) {
        across = new TextScanner(lexicon, listener);
        across.write(text.slice(paragraph, at + 1).replaceAll(LINE_BREAKS, ' '));
        read += at - paragraph;
      }
      at += 1;
      if (isCut || at - 1 === lastBreakEnd) paragraph = at;
      lastBreakEnd = at;
    }
    if (read < PIECE) continue;
    yield read;
    read = 0;
  }
  scanner.end();
  across?.end();
  yield read;
}
