/**
 * Clocks of processes and servers agree to this; milliseconds. What is farther apart, or ahead, was set
 * (docs/decisions/0117-a-clock-that-is-set.md).
 */
export const CLOCKS_APART_MS = 1_000;
