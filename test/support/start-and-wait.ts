/** A process that starts a server and waits, for tests that kill it: `node start-and-wait.ts SCRIPT`. */
import { startServer } from '../../scripts/embedded/server-process.ts';

const server = await startServer({
  name: 'The server of the test',
  command: '/bin/sh',
  args: ['-c', process.argv[2] ?? ''],
  ready: () => Promise.resolve(),
  readyTimeoutMs: 5_000,
  stopTimeoutMs: 5_000,
});
console.log(server.pid);
await server.exited;
