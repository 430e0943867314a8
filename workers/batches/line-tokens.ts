/** What the lines of a batch take beyond what is estimated of their prompts, as far as is known. */
export interface LineTokens {
  /** A line has ended that took so many. */
  note(tokens: number): void;
  /**
   * What the next line counts until it has ended, where it cannot take more than `most`. What is not known of it counts as
   * far as it has `room`: a key that is in use would never have enough for more. `hasHistory`: its entity's history comes on
   * top of `most`, and only lines that have ended tell how much that is.
   */
  next(most: number, room: number, hasHistory?: boolean): number;
}

/** What the last lines took tells the most of the next ones: a batch may have its long ones together. */
const MEMORY = 16;

/**
 * The key's mean answer says little of a batch: it may be that of short chat, and of answers that differ. Lines that run at
 * once would go beyond it all together, and other requests of the key would find nothing left. So the first lines count what
 * they can take at most, and the next ones the mean of the batch and a standard deviation; with few lines known the mean
 * itself is uncertain by about its size over the root of their number.
 */
export function createLineTokens(): LineTokens {
  let known = 0;
  let mean = 0;
  let variance = 0;
  return {
    note(tokens) {
      known = Math.min(MEMORY, known + 1);
      const [share, off] = [1 / known, tokens - mean];
      mean += share * off;
      variance = (1 - share) * (variance + share * off * off);
    },
    next(most, room, hasHistory = false) {
      const likely = known === 0 ? most : mean + Math.sqrt(variance + (mean * mean) / known);
      return Math.min(hasHistory ? Infinity : most, Math.ceil(Math.max(mean, Math.min(likely, room))));
    },
  };
}
