import { readFileSync } from 'node:fs';

/** Ordinary texts that hold a word, or the beginning of a phrase, of the lists. None may be flagged. */
export const HARMLESS = readFileSync(new URL('./harmless-texts.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n');
