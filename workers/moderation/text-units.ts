/** From this length on, one call into Node.js is cheaper than a loop. */
const LONG = 128;

/** An array of units is read faster than a string, which checks what it is on each read. */
export function unitsOf(text: string): Uint16Array {
  const { length } = text;
  if (length < LONG) {
    const units = new Uint16Array(length);
    for (let at = 0; at < length; at += 1) units[at] = text.charCodeAt(at);
    return units;
  }
  const bytes = Buffer.allocUnsafeSlow(length * 2);
  // Little-endian, like all machines but one that Node.js is built for.
  bytes.write(text, 'utf16le');
  return new Uint16Array(bytes.buffer, bytes.byteOffset, length);
}

export function codePointAt(units: Uint16Array, at: number): number {
  const first = units[at] ?? 0;
  if (first < 0xd800 || first > 0xdbff || at + 1 === units.length) return first;
  const second = units[at + 1] ?? 0;
  return second < 0xdc00 || second > 0xdfff ? first : (first - 0xd800) * 0x400 + (second - 0xdc00) + 0x1_0000;
}

const ESCAPES = /\\(?:u([0-9a-f]{4})|([^]))/gi;
const CUT_ESCAPE = /^\\(?:u[0-9a-f]{0,3})?$/i;

/** The length of JSON text without an escape that is cut at its end. */
function wholeLength(text: string): number {
  const last = text.lastIndexOf('\\');
  if (last < 0 || !CUT_ESCAPE.test(text.slice(last))) return text.length;
  let first = last;
  while (text[first - 1] === '\\') first -= 1;
  // Two of them are one escape.
  return (last - first) % 2 === 0 ? last : text.length;
}

function unescape(_escape: string, code: string | undefined, letter: string): string {
  if (code !== undefined) return String.fromCharCode(parseInt(code, 16));
  return 'nrtbf'.includes(letter) ? '\n' : letter;
}

/** Reads JSON that comes in pieces, such as a tool's arguments, without its escapes. */
export function openJsonReader(): (piece: string) => string {
  let cut = '';
  return (piece) => {
    const text = cut + piece;
    const end = wholeLength(text);
    cut = text.slice(end);
    return text.slice(0, end).replace(ESCAPES, unescape);
  };
}

export function endsInHalfCharacter(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last < 0xdc00;
}
