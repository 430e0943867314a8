/**
 * A separate program, so that a hanging download can be stopped: finds or downloads the official `mongod` and prints
 * its path as the last line. mongodb-memory-server-core decides where it comes from and where it is kept.
 */
import { MongoBinary } from 'mongodb-memory-server-core';
import { ResolveConfigVariables, setDefaultValue } from 'mongodb-memory-server-core/lib/util/resolveConfig.js';

// The library's three attempts take longer than a fallback that is ready within seconds.
setDefaultValue(ResolveConfigVariables.MAX_RETRIES, '1');

try {
  console.log(await MongoBinary.getPath());
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
