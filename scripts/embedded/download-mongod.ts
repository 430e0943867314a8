/**
 * A program of its own, so that a download that hangs can be ended: finds or downloads the official `mongod` and prints
 * its path as the last line. Where it is kept, and from where it comes, is up to mongodb-memory-server-core.
 */
import { MongoBinary } from 'mongodb-memory-server-core';
import { ResolveConfigVariables, setDefaultValue } from 'mongodb-memory-server-core/lib/util/resolveConfig.js';

// The library's three tries take longer than a fallback that is ready in seconds.
setDefaultValue(ResolveConfigVariables.MAX_RETRIES, '1');

try {
  console.log(await MongoBinary.getPath());
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
