import { isBlank } from './line-buffer.ts';

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

/** Finds the end of a JSON value that arrives in parts. */
export interface ValueScanner {
  /** The index after the value's last byte; the next call begins a new value. -1: the value continues. */
  scan(part: Buffer, from: number): number;
}

/**
 * Looks only at quotes and brackets, which is enough to find the end of a valid value, and takes a nanosecond or two
 * per byte. Whether the value is valid is left to `JSON.parse`, of that value alone.
 */
export function createValueScanner(): ValueScanner {
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
    scan(part, from) {
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
