import { createByteBlocks } from '../../http/byte-blocks.ts';

/** Where in the body a request stands, in words that its sender can look up. */
export interface Place {
  /** `Line 7`, or `requests[6]` in backticks. */
  name: string;
  /** `requests[6]`; undefined for a line, which is no field. */
  param?: string;
}

/** One request of a batch's body, as it came. */
export interface Piece {
  place: Place;
  /** Undefined: longer than a request may be. */
  json: Buffer | undefined;
}

/** Cuts a body into its requests while it arrives. */
export interface Splitter {
  /** A request that is no JSON makes the whole body none, as nobody can say where it ends. */
  isWhole: boolean;
  /** The requests that end in this part of the body. Throws a ServiceError on a body that is wrong as a whole. */
  push(part: Buffer): Iterable<Piece>;
  /** The body is over. */
  end(): Iterable<Piece>;
  /** The batch's own, as it came, once the body is over; undefined: it has none. */
  metadata(): Buffer | undefined;
  /** Bytes of what has begun to arrive. */
  heldBytes(): number;
}

/** Bytes that arrive in parts; those of a text above its limit are let go. */
export interface PartialText {
  add(part: Buffer): void;
  /** Undefined: it is longer than the limit. Begins the next text. */
  take(): Buffer | undefined;
  heldBytes(): number;
}

export function createPartialText(limitBytes: number): PartialText {
  const blocks = createByteBlocks();
  let bytes = 0;
  return {
    add(part) {
      bytes += part.length;
      if (bytes <= limitBytes) blocks.add(part);
      else blocks.clear();
    },
    take() {
      const text = bytes > limitBytes ? undefined : blocks.take();
      bytes = 0;
      return text;
    },
    heldBytes: () => blocks.length,
  };
}

/** Space, tab and the two line ends: what JSON allows between its tokens (RFC 8259 section 2). */
export function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
