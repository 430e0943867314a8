/** docs/spec/contract.md section 2. */
const BYTES_MAX = 512;

/** The value of `X-Ignored-Fields`: the names, percent-encoded, as many as there is room for. */
export function ignoredFieldsHeader(names: readonly string[]): string {
  let value = '';
  for (const name of names) {
    // A lone surrogate has no UTF-8 form: it is written as the replacement character.
    const next = (value === '' ? '' : `${value}, `) + encodeURIComponent(name.toWellFormed());
    if (next.length > BYTES_MAX) break;
    value = next;
  }
  return value;
}
