import { setImmediate } from 'node:timers/promises';
import {
  DEFAULT_MODERATION_POLICY,
  judge,
  type ModerationPolicy,
  type ModerationVerdict,
  type Moderator,
} from '../moderator.ts';
import { compileLexicon, type Lexicon } from './lexicon.ts';
import { readPhraseLists } from './phrase-lists.ts';
import type { PhraseMatch } from './phrase-tracker.ts';
import { TextScanner, type MatchListener } from './text-scanner.ts';

/**
 * Finds the phrases of word lists in a text: no network, and no state between texts. Start here to read the folder.
 *
 * The lists in `phrases/` hold phrases in a small notation (phrase-syntax.ts): words, alternatives, words that may be
 * skipped. They are compiled once per process into a `Lexicon`: a trie of all words (the vocabulary), and an automaton
 * over words (phrase-graph.ts). `TextScanner` reads a text once, from left to right, and reports each phrase with its
 * group, which has categories and a score. The same scanner reads a whole prompt (`scanText`) and an answer that arrives
 * in pieces (phrase-window.ts, which holds back at most 64 characters).
 *
 * People disguise words: `k i l l`, `k.i.l.l`, `kiill`, `k1ll`. So a character can be read in more than one way
 * (characters.ts): as one of several letters, as a gap between words, or as both, such as `$`. The scanner passes
 * characters to `SpellingVariants`, which follows all readings of a word down the trie at once, and complete words to
 * `PhraseTracker`, which follows phrases from word to word. A letter that is nothing but itself, such as `a`, is plain:
 * a word of plain letters has one reading and is read in a loop of its own.
 *
 * - A phrase is open after its first word, until it is complete or cannot continue. A thread is an open phrase with the
 *   position where it began.
 * - A stop or colon behind a word begins a new sentence if white space follows, and so does an empty line. The end of a
 *   sentence ends every open phrase.
 * - The state is bounded: at most 8 readings and 16 threads at once. So the time is linear in the text. Text made up to
 *   be slow costs more per character, but never more than 50 ms for 16,000 of them.
 * - Matches do not depend on how a text is cut into pieces. Positions count UTF-16 units.
 */
export interface LocalModerator extends Moderator {
  checkSync(text: string, policy?: ModerationPolicy): ModerationVerdict;
  /** A scanner for one text that arrives in pieces. */
  openScanner(listener: MatchListener): TextScanner;
}

/** How many characters are scanned before other work of the process gets its turn: a few milliseconds at worst. */
const CHARACTERS_PER_TURN = 32_000;

const LINE_BREAK = /[\n\r\u2028\u2029]/gu;
/** A line break, or text without one; of a long line some thousands of characters at a time. */
const PIECE = /[\n\r\u2028\u2029]|[^\n\r\u2028\u2029]{1,16000}/gu;

/** Compiled on first use, from the lists alone, so all moderators of a process can share it. */
let compiled: Lexicon | undefined;

/** Compiles the phrase lists; one per process serves all tenants. */
export function createLocalModerator(): LocalModerator {
  compiled ??= compileLexicon(readPhraseLists());
  const lexicon = compiled;

  return {
    backend: 'local',
    checkSync(text, policy = DEFAULT_MODERATION_POLICY) {
      const scores: Record<string, number> = {};
      const steps = scanText(lexicon, text, scores);
      while (steps.next().done !== true);
      return judge(scores, policy);
    },
    async check(texts, { policy = DEFAULT_MODERATION_POLICY, signal } = {}) {
      const scores: Record<string, number> = {};
      let scanned = 0;
      for (const text of typeof texts === 'string' ? [texts] : texts) {
        signal?.throwIfAborted();
        for (const characters of scanText(lexicon, text, scores)) {
          scanned += characters;
          if (scanned < CHARACTERS_PER_TURN) continue;
          scanned = 0;
          await setImmediate();
        }
      }
      return judge(scores, policy);
    },
    openScanner: (listener) => new TextScanner(lexicon, listener),
  };
}

/** The highest score of a category is its score. */
export function addScores(scores: Record<string, number>, { group, score }: PhraseMatch): void {
  for (const category of group.categories) scores[category] = Math.max(scores[category] ?? 0, score);
}

/**
 * Scores a whole text, both as it is and with its line breaks as spaces: an empty line ends a sentence for the scanner,
 * but not for a model. Yields how many characters it has read, at most some thousands at a time.
 *
 * The two readings differ only at an empty line that comes while a phrase is open. So the second scanner, which is
 * rarely needed, reads from the beginning of that paragraph until no phrase is open any more.
 */
function* scanText(lexicon: Lexicon, text: string, scores: Record<string, number>): Generator<number> {
  const listener: MatchListener = (match) => {
    addScores(scores, match);
    return false;
  };
  const scanner = new TextScanner(lexicon, listener);
  let across: TextScanner | undefined;
  /** Where the second scanner would start to read. */
  let paragraph = 0;
  let afterBreak = -1;

  for (const { 0: piece, index } of text.matchAll(PIECE)) {
    if (piece.length > 1 || piece.search(LINE_BREAK) < 0) {
      scanner.write(text, index, index + piece.length);
      across?.write(text, index, index + piece.length);
      yield piece.length;
      continue;
    }
    across?.write(' ');
    if (across !== undefined && across.heldFrom() >= across.length) across = undefined;
    // First a space, so that a full stop before the break ends the sentence, as it does in both readings.
    scanner.write(' ');
    const wasInPhrase = scanner.isInPhrase();
    scanner.write(piece);
    const isCut = wasInPhrase && !scanner.isInPhrase();
    if (isCut && across === undefined) {
      across = new TextScanner(lexicon, listener);
      across.write(text.slice(paragraph, index + 1).replaceAll(LINE_BREAK, ' '));
      yield index - paragraph;
    }
    if (isCut || index === afterBreak) paragraph = index + 1;
    afterBreak = index + 1;
  }
  scanner.end();
  across?.end();
}
