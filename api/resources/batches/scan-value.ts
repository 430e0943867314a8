import { createByteBuffer } from '../../http/read-body.ts';

/** The place of a request in the body, in words that let its sender find it. */
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
  end(): Iterable<Piece>;
  /** The batch's own metadata, unparsed, available once the body has ended; undefined: it has none. */
  metadata(): Buffer | undefined;
  /** Bytes held of texts that have arrived only in part. */
  heldBytes(): number;
}

/** A text that arrives in parts; its bytes are dropped once it exceeds the limit. */
export function createPartialText(limitBytes: number) {
  const buffer = createByteBuffer();
  let bytes = 0;
  return {
    add(part: Buffer): void {
      bytes += part.length;
      if (bytes <= limitBytes) buffer.add(part);
      else buffer.clear();
    },
    /** Returns the text and begins the next one. Undefined: the text exceeded the limit. */
    take(): Buffer | undefined {
      const text = bytes > limitBytes ? undefined : buffer.take();
      bytes = 0;
      return text;
    },
    heldBytes: (): number => buffer.length,
  };
}

/** Space, tab and both line ends: the whitespace that JSON allows between tokens (RFC 8259 section 2). */
export function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

function opens(byte: number | undefined): boolean {
  return byte === 0x7b || byte === 0x5b;
}

function closes(byte: number | undefined): boolean {
  return byte === 0x7d || byte === 0x5d;
}

/**
 * Looks only at quotes and brackets, which is enough to find the end of a valid value, and takes a nanosecond or two
 * per byte. Whether the value is valid is left to `JSON.parse`, of that value alone.
 */
export function createValueScanner() {
  let depth = 0;
  let inString = false;
  let isEscaped = false;

  /** The index of the quote that closes the string; -1: the string continues. */
  function closingQuote(part: Buffer, from: number): number {
    for (let index = from; index < part.length; index += 1) {
      const byte = part[index];
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) return index;
    }
    return -1;
  }

  return {
    /** The index after the value's last byte; the next call begins a new value. -1: the value continues. */
    scan(part: Buffer, from: number): number {
      for (let index = from; index < part.length; index += 1) {
        if (inString) {
          index = closingQuote(part, index);
          if (index === -1) return -1;
          inString = false;
          if (depth === 0) return index + 1;
          continue;
        }
        const byte = part[index];
        if (byte === QUOTE) inString = true;
        else if (opens(byte)) depth += 1;
        else if (closes(byte)) {
          // The closing bracket of the container around a number or a word.
          if (depth === 0) return index;
          depth -= 1;
          if (depth === 0) return index + 1;
        } else if (depth === 0 && (byte === COMMA || byte === COLON || isBlank(byte))) return index;
      }
      return -1;
    },
  };
}
