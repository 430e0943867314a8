/** Plain words that moderation finds harmless, alone and run together. */
const WORDS = [
  ...['river', 'garden', 'letter', 'teacher', 'student', 'window', 'market', 'lesson', 'village', 'bridge'],
  ...['forest', 'season', 'number', 'pattern', 'picture', 'machine', 'kitchen', 'library', 'harvest', 'station'],
] as const;

/** No log of the service has a reason to mention it. */
const MARK = 'Kingfisher';
/** Canaries in a text, the last one perhaps cut. */
export const CANARIES = new RegExp(`${MARK}(?:-[a-z]+)+`, 'g');
/** The trace of a canary, wherever it got to. */
export const CANARY_TRACE = new RegExp(`${MARK}-[a-z]+`, 'i');

/** The word of the n-th request: in its prompt and in no other's. */
export function canaryOf(index: number): string {
  const digits = [index / WORDS.length ** 2, index / WORDS.length, index];
  const words = digits.map((digit) => WORDS[Math.floor(digit) % WORDS.length] ?? '');
  return `${MARK}-${words.join('-')}`;
}

const FILLER = ['the', 'quiet', 'green', 'hills', 'rest', 'under', 'a', 'wide', 'morning', 'sky'] as const;
/** So many words lie between two canaries, so that nearly every chunk shows whose it is. */
const STRIDE = 6;

/** A prompt of so many words with the canary all over it. The simulated provider gives it back with `echo=1`. */
export function promptOf(canary: string, words: number): string {
  const all = Array.from({ length: words }, (_, index) =>
    index % STRIDE === 0 ? canary : (FILLER[index % FILLER.length] ?? ''),
  );
  return all.join(' ');
}
