import { setImmediate } from 'node:timers/promises';
import { DEFAULT_MODERATION_POLICY, judge, type Moderator } from '../moderator.ts';
import { compileLexicon, type Lexicon } from './lexicon.ts';
import { readPhraseLists } from './phrase-lists.ts';
import { scanText } from './scan-text.ts';
import { TextScanner, type MatchListener } from './text-scanner.ts';

/** The word-list backend: no network, no state between texts. */
export interface LocalModerator extends Moderator {
  /** A scanner for one text that arrives in pieces. */
  openScanner(listener: MatchListener): TextScanner;
}

/** Characters scanned before other work of the process gets its turn: a few milliseconds at worst. */
const CHARACTERS_PER_TURN = 32_000;

/** Compiled on first use, from the lists alone, so all moderators of a process can share it. */
let compiled: Lexicon | undefined;

/** One moderator per process serves all tenants. */
export function createLocalModerator(): LocalModerator {
  compiled ??= compileLexicon(readPhraseLists());
  const lexicon = compiled;

  return {
    backend: 'local',
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
