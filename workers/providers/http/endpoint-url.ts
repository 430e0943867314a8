/** Adds a path to a base URL, with or without a slash at its end; a query (Azure's `api-version`) stays behind it. */
export function endpointUrl(baseUrl: string, path: string): string {
  const [base = '', query] = baseUrl.split('?');
  return `${base.replace(/\/+$/, '')}${path}${query === undefined ? '' : `?${query}`}`;
}
