/** A function or a value, from its comment to its last line; `Seldom` begins the comment of what mostly is not called. */
const DEFINITION = /^((?:--.*\n)*)local (?:function (\w+)\(.*\n(?:.*\n)*?end$|(\w+) = (?:\{\n(?:.*\n)*?\}$|.*$))/gm;
const SELDOM_FUNCTION = /^(-- Seldom\b.*\n(?:--.*\n)*local function \w+\(.*\n(?:.*\n)*?end\n)/m;

interface Piece {
  text: string;
  isSeldom: boolean;
}

/** Without its comments, whose words are no names. */
const toPiece = (text: string): Piece => ({
  text: text.replaceAll(/^ *--.*\n/gm, ''),
  isSeldom: text.startsWith('-- Seldom'),
});

/**
 * What a script uses of its shared parts. Each call makes all functions of its script anew, so what only a seldom function
 * uses is made inside of it (docs/decisions/0071-what-a-request-costs-redis.md).
 */
export function linkParts(parts: readonly string[], body: string): string {
  const kept = body.split(SELDOM_FUNCTION).map(toPiece);
  // A definition uses what stands before it: whoever uses it has been decided on.
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
