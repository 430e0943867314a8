function setting(name: 'TEST_REDIS_URL' | 'TEST_MONGODB_URI'): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set; run the tests through npm test.`);
  return value;
}

/** The run's own Redis. */
export function redisUrl(): string {
  return setting('TEST_REDIS_URL');
}

/** A database of the run's own MongoDB; each test file has one. */
export function mongoUri(database: string): string {
  const url = new URL(setting('TEST_MONGODB_URI'));
  url.pathname = `/${database}`;
  return url.href;
}
