/** A definition of a shared part, function or value, from its comment to its last line. */
const DEFINITION = /^((?:--.*\n)*)local (?:function (\w+)\(.*\n(?:.*\n)*?end$|(\w+) = (?:\{\n(?:.*\n)*?\}$|.*$))/gm;
/** A comment that begins with this line marks a function that few calls of a script need. */
const SELDOM = '-- @seldom\n';
const SELDOM_FUNCTION = /^(-- @seldom\n(?:--.*\n)*local function \w+\(.*\n(?:.*\n)*?end\n)/m;

interface Piece {
  text: string;
  isSeldom: boolean;
}

/** Without comments, whose words are not names. */
const toPiece = (text: string): Piece => ({
  text: text.replaceAll(/^ *--.*\n/gm, ''),
  isSeldom: text.startsWith(SELDOM),
});

/**
 * Puts before a script what it uses of the shared parts. Each call of a script creates all its functions anew. So what only
 * a function marked `@seldom` uses is defined inside of it, and created only if it is called
 * (docs/benchmarks/performance-log.md).
 */
export function linkParts(parts: readonly string[], body: string): string {
  const kept = body.split(SELDOM_FUNCTION).map(toPiece);
  // From the last definition to the first: what uses a definition stands after it, and is in `kept` already.
  for (const [text, , ofFunction, ofValue] of [...parts.join('\n').matchAll(DEFINITION)].reverse()) {
    const name = new RegExp(`(?<!')\\b${ofFunction ?? ofValue ?? ''}\\b(?!')`);
    const [user, ...others] = kept.filter((piece) => name.test(piece.text));
    if (user?.isSeldom === true && others.length === 0) {
      user.text = user.text.replace(/^local function .*\n/m, (head) => `${head}${toPiece(text).text}\n`);
    } else if (user !== undefined) {
      kept.unshift(toPiece(`${text}\n`));
    }
  }
  return kept.map(({ text }) => text).join('');
}
