const wellFormed = (_name: string, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value);

/**
 * JSON in which each half of a surrogate pair that stands alone is a replacement character (U+FFFD). UTF-8 has no form for
 * such a half: servers that keep it answer with an error of their own, as 500, which would count against them.
 */
export function wellFormedJson(body: object): string {
  const json = JSON.stringify(body);
  // JSON writes such a half as an escape, and nothing else; so most texts are written once.
  return json.includes(String.raw`\ud`) ? JSON.stringify(body, wellFormed) : json;
}
