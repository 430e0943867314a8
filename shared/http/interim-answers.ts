import type { Socket } from 'node:net';

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const ZERO = 48;
const ONE = 49;
const THREE = 51;
/** Places of a status's digits in `HTTP/1.1 100 Continue`. */
const HUNDREDS = 9;
const TENS = 10;
const UNITS = 11;

export interface Answers {
  /** A byte has come since the connection was opened, or since `next`. */
  hasBegun(): boolean;
  /** An answer has ended; later bytes belong to another one. */
  next(): void;
}

/**
 * Has undici skip `100 Continue` that nobody asked for, as it skips `102` and `103`. RFC 9110 section 15.2 requires
 * that of a client; undici takes it for a bad answer (nodejs/undici#197, "wontfix") and has no setting for it. The last
 * digit of the status becomes a 3 on its way, so nothing has to be held back. One answer at a time, over HTTP/1.
 */
export function skipContinue(socket: Socket): Answers {
  let hasBegun = false;
  let isInHead = true;
  /** Place in the status line; beyond the digits the interim head goes on to its blank line. */
  let at = 0;
  let isTens = false;
  let isLineEmpty = false;

  function begin(): void {
    isInHead = true;
    at = 0;
    isLineEmpty = false;
  }

  function passHead(part: Buffer): void {
    for (let index = 0; index < part.length; index += 1, at += 1) {
      const byte = part[index];
      if (at === HUNDREDS && byte !== ONE) {
        isInHead = false;
        return;
      }
      if (at === TENS) isTens = byte === ZERO;
      if (at === UNITS && isTens && byte === ZERO) part[index] = THREE;
      if (at <= UNITS || byte === CARRIAGE_RETURN) continue;
      if (byte === LINE_FEED && isLineEmpty) {
        begin();
        // The loop adds one.
        at = -1;
      } else isLineEmpty = byte === LINE_FEED;
    }
  }

  const read = socket.read.bind(socket);
  socket.read = (size) => {
    const part: unknown = read(size);
    if (part === null) return part;
    hasBegun = true;
    if (isInHead && Buffer.isBuffer(part)) passHead(part);
    return part;
  };
  return {
    hasBegun: () => hasBegun,
    next() {
      hasBegun = false;
      begin();
    },
  };
}
