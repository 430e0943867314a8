/** Throws on bytes that are not UTF-8: replacing them would change what the caller wrote. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/** A smaller text is parsed within some 40 ms, whatever it holds. */
const COUNTED_FROM_BYTES = 256 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;

export type ParsedJson = { kind: 'value'; value: unknown } | { kind: 'not json' | 'not utf-8' | 'too many values' };

/** Where a string ends that begins at `start`: its closing quote has an even number of backslashes before it. */
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
 * million nested arrays without a comma take seconds to parse. The scan skips strings by `indexOf`: reading 20 MiB of
 * them byte by byte would take as long as parsing them.
 */
function hasMoreValues(json: Buffer, max: number): boolean {
  let values = 0;
  for (let index = 0; index < json.length && values < max; index += 1) {
    const byte = json[index];
    if (byte === QUOTE) index = endOfString(json, index);
    else if (byte === COMMA || byte === OPENING_BRACKET || byte === OPENING_BRACE) values += 1;
  }
  return values >= max;
}

function decode(json: Buffer): string | undefined {
  try {
    return decoder.decode(json);
  } catch {
    return undefined;
  }
}

/** Parses JSON from outside. `valuesMax` limits the values of a large text: a million small ones take seconds. */
export function parseJson(json: Buffer, valuesMax = Infinity): ParsedJson {
  if (json.length > COUNTED_FROM_BYTES && hasMoreValues(json, valuesMax)) return { kind: 'too many values' };
  const text = decode(json);
  if (text === undefined) return { kind: 'not utf-8' };
  try {
    return { kind: 'value', value: JSON.parse(text) };
  } catch {
    return { kind: 'not json' };
  }
}
