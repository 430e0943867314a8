const wellFormed = (_name: string, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value);

/**
 * JSON in which each lone surrogate is replaced by U+FFFD. UTF-8 cannot represent a lone surrogate: servers that keep
 * one answer with an error of their own, such as 500, which would count against them.
 */
export function wellFormedJson(body: object): string {
  const json = JSON.stringify(body);
  // JSON.stringify escapes surrogates only if they stand alone, so most bodies are serialized once.
  return json.includes(String.raw`\ud`) ? JSON.stringify(body, wellFormed) : json;
}
