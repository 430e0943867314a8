/**
 * Plain words of at most 7 letters, so that each is one token even with a capital or a full stop (tokens.ts). They are
 * chosen so that no word, and no two adjacent words, look like something that moderation flags; a test checks this.
 */
const WORDS = {
  determiner: ['the', 'this', 'each', 'every', 'one', 'our', 'that', 'another'],
  adjective: [
    ...['clear', 'small', 'quiet', 'simple', 'bright', 'careful', 'gentle', 'warm', 'steady', 'modern'],
    ...['broad', 'common', 'early', 'green', 'useful', 'recent', 'patient', 'golden', 'local', 'famous'],
  ],
  noun: [
    ...['river', 'garden', 'letter', 'teacher', 'student', 'window', 'market', 'lesson', 'village', 'bridge'],
    ...['forest', 'season', 'number', 'pattern', 'picture', 'machine', 'kitchen', 'library', 'harvest', 'station'],
    ...['reader', 'planet', 'signal', 'method', 'journey', 'weather', 'problem', 'story', 'answer', 'system'],
  ],
  verb: [
    ...['shows', 'helps', 'follows', 'covers', 'joins', 'reaches', 'carries', 'needs', 'opens', 'brings'],
    ...['keeps', 'teaches', 'changes', 'guides', 'meets', 'returns', 'finds', 'makes', 'reminds', 'watches'],
  ],
  preposition: ['near', 'with', 'beyond', 'around', 'before', 'after', 'during', 'across', 'beside', 'without'],
  adverb: ['slowly', 'often', 'again', 'today', 'quickly', 'gladly', 'rarely', 'calmly', 'early', 'already'],
  joint: ['and', 'while', 'because', 'so', 'until', 'where'],
} as const satisfies Record<string, readonly string[]>;

type WordClass = keyof typeof WORDS;

const CLAUSE: readonly WordClass[] = ['determiner', 'adjective', 'noun', 'verb', 'determiner', 'noun'];
const PLACE: readonly WordClass[] = ['preposition', 'determiner', 'adjective', 'noun'];
const SENTENCES: readonly (readonly WordClass[])[] = [
  [...CLAUSE, 'adverb'],
  [...CLAUSE, ...PLACE],
  [...CLAUSE, 'joint', ...CLAUSE],
  ['adverb', ...CLAUSE, ...PLACE],
  [...CLAUSE, 'joint', ...CLAUSE, ...PLACE],
];

/** The same seed and length give the same text in every process: `words` words in sentences, each ending in a full stop. */
export function writeText(seed: number, words: number): string {
  const pick = createPicker(seed);
  let text = '';
  let written = 0;
  while (written < words) {
    const sentence = pick(SENTENCES);
    for (let position = 0; position < sentence.length && written < words; position++) {
      const word = pick(WORDS[sentence[position] ?? 'noun']);
      written += 1;
      text += (written === 1 ? '' : ' ') + (position === 0 ? capitalised(word) : word);
    }
    text += '.';
  }
  return text;
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** A 32-bit generator (mulberry32): a few operations per word, and the same on every machine. */
function createPicker(seed: number): <T>(list: readonly T[]) => T {
  let state = seed >>> 0;
  return (list) => {
    state = (state + 0x6d2b79f5) >>> 0;
    // The index is below the length, and no list here is empty.
    return list[scramble(state) % list.length] as (typeof list)[number];
  };
}

/** Spreads the bits of `state` over 32 bits: adjacent numbers give unrelated results. */
export function scramble(state: number): number {
  let bits = Math.imul(state ^ (state >>> 15), state | 1);
  bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
  return (bits ^ (bits >>> 14)) >>> 0;
}
