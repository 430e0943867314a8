/** The order of acceptance, `seq`, is a time in microseconds (admit.lua); other times here are milliseconds. */
const SEQ_PER_MS = 1_000;

/** The first place in the order of acceptance that a request of this moment can have. */
export function seqAt(timeMs: number): number {
  return timeMs * SEQ_PER_MS;
}

/** When a request with this place in the order was accepted. */
export function timeOfSeq(seq: number): number {
  return seq / SEQ_PER_MS;
}
