/**
 * Clocks of processes and servers agree to within this; milliseconds. A time that is further apart, or further ahead,
 * means that a clock was set (docs/decisions/0005-fencing-and-leases.md).
 */
export const CLOCKS_APART_MS = 1_000;
