/** An escape of JSON.stringify, and perhaps that of half a surrogate pair: it escapes surrogates only if they stand alone. */
const ESCAPE = /\\(?:ud[0-9a-f]{3}|.)/g;
const HALF_LENGTH = String.raw`\ud83d`.length;

/**
 * JSON in which each half of a surrogate pair, in names too, is replaced by U+FFFD. UTF-8 cannot represent one alone:
 * strict readers refuse the whole text, and providers that keep one answer with an error of their own, such as 500,
 * which would count against them.
 */
export function wellFormedJson(value: object): string {
  const json = JSON.stringify(value);
  if (!json.includes(String.raw`\ud`)) return json;
  return json.replace(ESCAPE, (escape) => (escape.length === HALF_LENGTH ? '\ufffd' : escape));
}
