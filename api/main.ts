import { environment } from '../shared/config/load-config.ts';
import { openHealthServer } from '../shared/lifecycle/health-server.ts';
import { runProcess } from '../shared/lifecycle/run-process.ts';
import { composeIngress } from './compose.ts';
import { servedDocument } from './resources/docs-route.ts';
import { serve } from './http/server/serve.ts';

/** The part of the shutdown grace reserved for closing the stores, or half the grace if it is short. */
const CLOSING_MS = 3_000;
/** Extra time for stores that hang. */
const HANGING_MS = 5_000;
/** The administration is for a few people and what watches the service. */
const ADMIN_CONNECTIONS_MAX = 256;

await runProcess({
  kind: 'api',
  name: 'api',
  env: environment,
  graceMs: ({ limits }) => limits.shutdownGraceSeconds * 1000 + HANGING_MS,
  async start(config, log, closer) {
    await servedDocument();
    const { app, adminApp, stopWaiting, ...pages } = await composeIngress(config, log, closer);
    const { host, port, adminHost, adminPort, metricsPort, maxConnections, keepAliveSeconds } = config.http;
    const wholeMs = config.limits.shutdownGraceSeconds * 1000;
    const graceMs = Math.max(wholeMs - CLOSING_MS, wholeMs / 2);
    const at = { port: metricsPort, host, setting: 'METRICS_PORT' };
    await openHealthServer(at, config.metrics, closer, () => pages);
    await serve(
      adminApp,
      {
        port: adminPort,
        host: adminHost,
        setting: 'ADMIN_PORT',
        graceMs: 1_000,
        maxConnections: Math.min(maxConnections, ADMIN_CONNECTIONS_MAX),
        keepAliveMs: keepAliveSeconds * 1000,
        tls: config.tls,
      },
      closer,
    );
    await serve(
      app,
      {
        port,
        host,
        setting: 'PORT',
        maxConnections,
        keepAliveMs: keepAliveSeconds * 1000,
        graceMs,
        onGraceOver: stopWaiting,
        tls: config.tls,
      },
      closer,
    );
    log.info(`The ingress listens on ${host}:${port}, its administration on ${adminHost}:${adminPort}.`);
  },
});
