/** Learns how many tokens the lines of a batch take beyond their estimated prompts. */
export interface LineTokens {
  /** A line that took this many tokens has ended. */
  note(tokens: number): void;
  /**
   * How many tokens the next line counts as until it has ended; without history it cannot take more than `most`. The
   * uncertain part counts only as far as there is `room`: a key in use would never have enough for more. `hasHistory`:
   * the entity's history comes on top of `most`, and only ended lines tell how long it is.
   */
  next(most: number, room: number, hasHistory?: boolean): number;
}

/** How many of the latest lines count: they say most about the next ones, as long lines may come together. */
const MEMORY = 16;

/**
 * The key's mean answer says little about a batch: it may come from short chats of a different kind. Lines that run at
 * once would all exceed it together and leave nothing for the key's other requests. So the first lines count the most
 * they can take, and later ones the batch's mean plus a standard deviation; with few lines known, the mean itself is
 * uncertain by about its size over the root of their number.
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
