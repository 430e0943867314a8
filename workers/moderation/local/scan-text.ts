import type { Lexicon } from './lexicon.ts';
import { TextScanner, type MatchListener } from './text-scanner.ts';

/** A piece of a line, or a break; cut between code points. */
const PIECES = /[^\n\r\u2028\u2029]{1,16000}|[\n\r\u2028\u2029]/gu;
const LINE_BREAK = /[\n\r\u2028\u2029]/u;
const LINE_BREAKS = /[\n\r\u2028\u2029]/gu;

/** The highest score of a category is its score. */
export function addScores(scores: Record<string, number>, categories: readonly string[], score: number): void {
  for (const category of categories) scores[category] = Math.max(scores[category] ?? 0, score);
}

/**
 * Scores a whole text, as it is and with its line breaks as spaces: an empty line ends a sentence to the scanner, and not
 * to a model. Yields how many characters it has read, at most some thousands at a time.
 *
 * Only an empty line makes a difference between the two, and only where a phrase is open in front of it. So the second
 * scanner reads from the beginning of such a paragraph until nothing is open any more, and mostly there is none.
 */
export function* scanText(lexicon: Lexicon, text: string, scores: Record<string, number>): Generator<number> {
  const listener: MatchListener = (match) => {
    addScores(scores, match.group.categories, match.score);
    return false;
  };
  const scanner = new TextScanner(lexicon, listener);
  let across: TextScanner | undefined;
  /** Where the second scanner would begin to read. */
  let paragraph = 0;
  let lastBreakEnd = -1;

  /** True where the break has ended a phrase that was open. */
  function cutsPhrase(lineBreak: string): boolean {
    // A space in front, so that a full stop ends the sentence first, as it does in both readings.
    scanner.write(' ');
    const heldFrom = scanner.heldFrom();
    const isOpen = heldFrom < scanner.length;
    scanner.write(lineBreak);
    return isOpen && scanner.heldFrom() > heldFrom;
  }

  for (const { 0: piece, index } of text.matchAll(PIECES)) {
    if (!LINE_BREAK.test(piece)) {
      scanner.write(piece);
      across?.write(piece);
      yield piece.length;
      continue;
    }
    across?.write(' ');
    if (across !== undefined && across.heldFrom() >= across.length) across = undefined;
    const isCut = cutsPhrase(piece);
    if (isCut && across === undefined) {
      across = new TextScanner(lexicon, listener);
      across.write(text.slice(paragraph, index + 1).replaceAll(LINE_BREAKS, ' '));
      yield index - paragraph;
    }
    if (isCut || index === lastBreakEnd) paragraph = index + 1;
    lastBreakEnd = index + 1;
  }
  scanner.end();
  across?.end();
}
