import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { createLocalModerator } from '../../../../../workers/moderation/local/local-moderator.ts';
import { compileLexicon } from '../../../../../workers/moderation/local/lexicon.ts';
import { readPhraseLists } from '../../../../../workers/moderation/local/phrase-lists.ts';
import type { Lexicon } from '../../../../../workers/moderation/local/lexicon.ts';
import { OpenPhrases } from '../../../../../workers/moderation/local/open-phrases.ts';
import { TextScanner } from '../../../../../workers/moderation/local/text-scanner.ts';
import type { MatchListener } from '../../../../../workers/moderation/local/text-scanner.ts';
import { VIOLATING } from '../violating-texts.ts';
import { checkSync } from '../check-sync.ts';

const moderator = createLocalModerator();

/** The longest message (docs/spec.md#chat-request). */
const CODE_POINTS = 16_000;
/** A message is scanned before its request goes on, so the longest one must not hold up a worker's event loop. */
const LIMIT_MS = 50;

function fill(part: string): string {
  const points = Array.from(part.repeat(Math.ceil(CODE_POINTS / Array.from(part).length)));
  return points.slice(0, CODE_POINTS).join('');
}

/** A row of pseudo-random characters, the same in every run. */
function shuffle(alphabet: string): string {
  const letters = Array.from(alphabet);
  let seed = 12_345;
  return Array.from({ length: CODE_POINTS }, () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return letters[(seed >>> 8) % letters.length] ?? '';
  }).join('');
}

/** The least of five runs: what the text costs, not what else the machine does. */
function cpuMsOf(text: string): number {
  const runs = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    checkSync(text);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...runs);
}

const TEXTS = Object.values(VIOLATING).flat();
/** Words of such texts and of ordinary ones, in the forms in which a word may come. */
const WORDS = [...TEXTS.flatMap((text) => text.split(' ')), ...'tell will see a i the kill you'.split(' ')].flatMap(
  (word) => [word, `${word} `, ` ${word}`, word.toUpperCase(), Array.from(word).join('.'), accented(word)],
);

/** With an accent on every vowel but i, which has readings of its own. */
function accented(text: string): string {
  return text.replaceAll(/[aeou]/g, (vowel) => `${vowel}\u0301`).normalize('NFC');
}

describe('16,000 code points made to be slow take less than 50 ms', () => {
  it.each([
    ['one letter', fill('a')],
    ['brackets', fill('(')],
    ['letters that are gaps', fill('i!')],
    ['every reading of i and l', fill('1!|Iil')],
    ['zero-width characters', fill('\u200b')],
    ['zero-width characters in words', fill('k\u200bi\u200bl\u200bl')],
    ['combining marks', fill('k\u0301\u0302\u0303')],
    ['full-width words', fill('ｋｉｌｌ ')],
    ['one long token, which may begin a phrase everywhere', fill('@l714')],
    ['one long token of words and numbers', fill('1k|')],
    ['one long token of points and doubled letters', fill('mm7b!')],
    ['beginnings of phrases', fill('how to ')],
    ['phrases that never end', fill('please how to make a big huge ')],
    ['wishes in wishes', fill('i want to i want to kill ')],
    ['letters with spaces', fill('i w i l l k i l l ')],
    ['letters with dots', fill('k.i.l.l.y.o.u.')],
    ['words that may be skipped', fill('how did a b make ')],
    ['one wide gap', `make a${' '.repeat(CODE_POINTS - 10)}bomb`],
    // The dearest of 2,300 mixtures of words from the lists, in every disguise.
    ['words in disguises', fill('d.e.f.e.n.s.e scumbag legosquadgutssssss j a i l b a i t ')],
    ['bold words', fill('𝓭𝓮𝓼𝓬𝓻𝓲𝓹𝓽𝓲𝓸𝓷𝓼 background e.r.o.t.i.c.a ')],
    ['mixed symbols', shuffle('!$@|1l0oi5s3e7t')],
    ['mixed look-alikes', shuffle('!$@|1l0oi5s3e7t. \u200bаоеіｋ𝓲')],
    [
      'every code point once',
      Array.from({ length: CODE_POINTS }, (_, index) => String.fromCodePoint(0xa0 + index)).join(''),
    ],
  ])('16,000 code points made to be slow take less than 50 ms: %s', (_, text) => {
    expect(Array.from(text)).toHaveLength(CODE_POINTS);
    expect(cpuMsOf(text)).toBeLessThan(LIMIT_MS);
  });
});

describe('halves of characters', () => {
  it('teach the scanner nothing of the characters that begin or end with them', () => {
    const bold = '𝐡𝐨𝐰 𝐭𝐨 𝐛𝐮𝐢𝐥𝐝 𝐚 𝐛𝐨𝐦𝐛';
    expect(checkSync(bold).flagged).toBe(true);
    const halves = Array.from({ length: bold.length }, (_, index) => bold.charAt(index));

    checkSync(halves.join(' a '));

    expect(checkSync(bold).flagged).toBe(true);
    expect(checkSync(`Well, ${bold}`).flagged).toBe(true);
  });
});

describe('sentences', () => {
  it('sentences do not make a phrase together', () => {
    expect(checkSync('That is a movie I will kill. You are welcome.').flagged).toBe(false);
  });

  it('begin behind a colon and after an empty line', () => {
    expect(checkSync('Task: build a bomb').flagged).toBe(true);
    expect(checkSync('Hello\n\nBuild a bomb').flagged).toBe(true);
    expect(checkSync('they tried to build a bomb').flagged).toBe(false);
  });
});

describe('a text in pieces', () => {
  function matchesOf(pieces: readonly string[], lexicon?: Lexicon): string[] {
    const matches: string[] = [];
    const note: MatchListener = ({ start, group, score }, at) => {
      matches.push(`${start}-${at} ${group.categories.join()} ${score}`);
      return false;
    };
    const scanner = lexicon === undefined ? moderator.openScanner(note) : new TextScanner(lexicon, note);
    for (const piece of pieces) scanner.write(piece);
    scanner.end();
    return matches;
  }

  it('a text in pieces gives the same matches as the whole', () => {
    const text = 'So, how do I b u i l d a b0mb? Also: I will ki11 you, 𝐤𝐲𝐬.';
    const whole = matchesOf([text]);
    expect(whole.length).toBeGreaterThan(2);
    expect(matchesOf(Array.from(text))).toEqual(whole);
  });

  it('is read letter by letter as it is read word by word, whatever it says', () => {
    const fragment = fc.oneof(
      { weight: 2, arbitrary: fc.constantFrom(...TEXTS) },
      { weight: 4, arbitrary: fc.constantFrom(...WORDS) },
      { weight: 2, arbitrary: fc.constantFrom(...Array.from(' .,!?:-_\'"()$@|10\n\n\u200b\u0301éI')) },
      { weight: 1, arbitrary: fc.constantFrom(' | ', '. ', ', ', ': ', ' a ', 'all ', 'will ', 'killl ', 'bommb ') },
      {
        weight: 1,
        arbitrary: fc.constantFrom('3 ', '$49.90 ', '18 ', '1.2 kg', '48113) ', 'e.g. ', 'x((y ', 'k1ll ', '! '),
      },
      { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 4 }) },
    );
    let found = 0;
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 30 }), (fragments) => {
        const text = fragments.join('');
        const whole = matchesOf([text]);
        found += whole.length;
        expect(matchesOf(Array.from(text))).toEqual(whole);
        expect(matchesOf(text.split(/(?<= )/u))).toEqual(whole);
      }),
      { numRuns: 1_000 },
    );
    // Else the texts say nothing.
    expect(found).toBeGreaterThan(100);
  });

  it('is read so by a process that forgets what it knew of rows of words all the time', () => {
    const lexicon = compileLexicon(readPhraseLists());
    const forgetful = { ...lexicon, openPhrases: new OpenPhrases(lexicon.phrases, 3) };
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...TEXTS, ...WORDS), { maxLength: 20 }), (fragments) => {
        const text = fragments.join(' ');
        expect(matchesOf([text], forgetful)).toEqual(matchesOf(Array.from(text)));
      }),
      { numRuns: 500 },
    );
  });

  it('is read with accents as it is read without them', () => {
    const fragment = fc.constantFrom(...TEXTS, ...WORDS, ' ', '. ', 'éé', 'ö', 'Über ');
    const plain = (text: string) => text.normalize('NFD').replaceAll(/\p{M}/gu, '');
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 20 }), (fragments) => {
        const text = plain(fragments.join('')).normalize('NFC');
        expect(matchesOf([accented(text)])).toEqual(matchesOf([text]));
      }),
      { numRuns: 500 },
    );
  });

  it('costs no more with accents than without', () => {
    const text = 'the garden behind our house has a bench under an old tree, where we often read. ';
    cpuMsOf(fill(accented(text)));
    expect(cpuMsOf(fill(accented(text)))).toBeLessThan(cpuMsOf(fill(text)) * 2);
  });
});
