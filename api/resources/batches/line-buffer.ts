import { createByteBuffer } from '../../http/read-body.ts';

/** Where in the body a request stands, in words that let its sender find it. */
export interface Place {
  /** `Line 7`, or `requests[6]` in backticks. */
  name: string;
  /** `requests[6]`; undefined for a line, which is not a field. */
  param?: string;
}

/** One request from a batch's body, unparsed. */
export interface Piece {
  place: Place;
  /** Undefined: the request is longer than allowed. */
  json: Buffer | undefined;
}

/** Splits a body into its requests while it arrives. */
export interface Splitter {
  /** One request of invalid JSON invalidates the whole body, because nobody can say where that request ends. */
  isWhole: boolean;
  /** The requests that end in this part of the body. Throws a ServiceError if the body as a whole is invalid. */
  push(part: Buffer): Iterable<Piece>;
  /** To be called at the end of the body. */
  end(): Iterable<Piece>;
  /** The batch's own metadata, unparsed, available once the body has ended; undefined: it has none. */
  metadata(): Buffer | undefined;
  /** Bytes held of texts that have arrived only in part. */
  heldBytes(): number;
}

/** A text that arrives in parts; its bytes are dropped once it exceeds the limit. */
export interface PartialText {
  add(part: Buffer): void;
  /** Returns the text and begins the next one. Undefined: the text exceeded the limit. */
  take(): Buffer | undefined;
  heldBytes(): number;
}

export function createPartialText(limitBytes: number): PartialText {
  const buffer = createByteBuffer();
  let bytes = 0;
  return {
    add(part) {
      bytes += part.length;
      if (bytes <= limitBytes) buffer.add(part);
      else buffer.clear();
    },
    take() {
      const text = bytes > limitBytes ? undefined : buffer.take();
      bytes = 0;
      return text;
    },
    heldBytes: () => buffer.length,
  };
}

/** Space, tab and both line ends: the whitespace that JSON allows between tokens (RFC 8259 section 2). */
export function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
