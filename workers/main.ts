import { environment } from '../shared/config/load-config.ts';
import { openHealthServer } from '../shared/lifecycle/health-server.ts';
import { runProcess } from '../shared/lifecycle/run-process.ts';
import { composeWorker } from './compose.ts';

/** Time beyond a request's limit: 17 s for attempts for webhooks, 8 s for all else that closes, and some to spare. */
const CLOSING_MS = 30_000;

await runProcess({
  kind: 'worker',
  name: 'worker',
  env: environment,
  // A worker finishes what it runs, up to the request's time limit (docs/spec.md#processes).
  graceMs: ({ limits }) => limits.requestTimeoutSeconds * 1000 + CLOSING_MS,
  async start(config, log, closer) {
    const { host, workerPort } = config.http;
    const running: { worker?: Awaited<ReturnType<typeof composeWorker>> } = {};
    // Before it takes any work: a port in use must not leave it with requests that it has to finish first.
    const at = { port: workerPort, host, setting: 'WORKER_PORT' };
    await openHealthServer(at, config.metrics, closer, () => running.worker);
    running.worker = await composeWorker(config, log, closer);
    log.info('The worker is running.', { count: config.worker.concurrency });
  },
});
