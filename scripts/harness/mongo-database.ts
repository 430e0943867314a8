/**
 * The same MongoDB with another database, because a benchmark must not write into one that is in use. Parsed by hand,
 * because a URI with several hosts is not a URL.
 */
export function withDatabase(uri: string, database: string): string {
  const match = /^(mongodb(?:\+srv)?:\/\/)([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(uri);
  if (match === null) throw new Error('MONGODB_URI must be a URI as in mongodb://host:27017/database.');
  const [, scheme = '', hosts = '', from = '', query = ''] = match;
  const options = new URLSearchParams(query);
  // Logins are looked up in the path's database, unless the URI names another one.
  if (hosts.includes('@') && !options.has('authSource') && scheme === 'mongodb://') {
    options.set('authSource', from === '' ? 'admin' : from);
  }
  const rest = options.size === 0 ? '' : `?${options.toString()}`;
  return `${scheme}${hosts}/${database}${rest}`;
}
