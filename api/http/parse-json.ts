import { setImmediate as nextTurn } from 'node:timers/promises';

/** Throws on bytes that are not UTF-8, because replacing them would change what the caller wrote. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * How deeply a request may be nested: metadata may have 5 levels, MongoDB stores 100. Parsing is safe at any depth, but
 * writing JSON again is not.
 */
export const JSON_DEPTH_MAX = 100;

/** A smaller text is parsed within some 40 ms, whatever it contains. */
const COUNTED_FROM_BYTES = 256 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

export type ParsedJson =
  { kind: 'value'; value: unknown } | { kind: 'not json' | 'not utf-8' | 'too many values' | 'too deep' };

/** Where the string that begins at `start` ends: its closing quote has an even number of backslashes before it. */
function endOfString(json: Buffer, start: number): number {
  for (let end = json.indexOf(QUOTE, start + 1); end !== -1; end = json.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (json[end - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return json.length;
}

/**
 * Counts the commas outside of strings, each of which separates two values, and the opening brackets, because ten
 * million nested arrays without a comma take seconds to parse. The scan skips strings with `indexOf`: reading 20 MiB of
 * strings byte by byte would take as long as parsing them.
 */
function excessOf(json: Buffer, valuesMax: number): 'too many values' | 'too deep' | undefined {
  let values = 0;
  let depth = 0;
  for (let index = 0; index < json.length; index += 1) {
    const byte = json[index];
    if (byte === QUOTE) index = endOfString(json, index);
    else if (byte === OPENING_BRACKET || byte === OPENING_BRACE) {
      values += 1;
      depth += 1;
      if (depth > JSON_DEPTH_MAX) return 'too deep';
    } else if (byte === COMMA) values += 1;
    else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) depth -= 1;
    if (values >= valuesMax) return 'too many values';
  }
  return undefined;
}

function decode(json: Buffer): string | undefined {
  try {
    return decoder.decode(json);
  } catch {
    return undefined;
  }
}

function parseText(text: string | undefined): ParsedJson {
  if (text === undefined) return { kind: 'not utf-8' };
  try {
    return { kind: 'value', value: JSON.parse(text) };
  } catch {
    return { kind: 'not json' };
  }
}

/**
 * Parses JSON from outside, nested at most `JSON_DEPTH_MAX` deep. `valuesMax` limits the values of a large text: a
 * million small ones take seconds.
 */
export function parseJson(json: Buffer, valuesMax = Infinity): ParsedJson {
  const excess = excessOf(json, json.length > COUNTED_FROM_BYTES ? valuesMax : Infinity);
  return excess === undefined ? parseText(decode(json)) : { kind: excess };
}

/** Like `parseJson`, for a large text: each step takes tens of milliseconds, so other requests run in between. */
export async function parseLargeJson(json: Buffer, valuesMax: number): Promise<ParsedJson> {
  await nextTurn();
  const excess = excessOf(json, valuesMax);
  if (excess !== undefined) return { kind: excess };
  await nextTurn();
  const text = decode(json);
  await nextTurn();
  const parsed = parseText(text);
  await nextTurn();
  return parsed;
}
