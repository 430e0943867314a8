import type { RequestListener } from 'node:http';

import { environment } from '../shared/config/load-config.ts';
import { openHealthServer } from '../shared/lifecycle/health-server.ts';
import { createServing } from '../shared/lifecycle/readiness.ts';
import { runProcess } from '../shared/lifecycle/run-process.ts';
import { createStartingApp } from './app.ts';
import { composeIngress } from './compose.ts';
import type { Ingress } from './compose.ts';
import { servedDocument } from './resources/docs-route.ts';
import { open, serve } from './http/serve.ts';

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
  graceMs: ({ limits, http }) => (http.drainSeconds + limits.shutdownGraceSeconds) * 1000 + HANGING_MS,
  async start(config, log, closer) {
    await servedDocument();
    const { host, port, adminHost, adminPort, metricsPort, maxConnections, keepAliveSeconds, drainSeconds } =
      config.http;
    const wholeMs = config.limits.shutdownGraceSeconds * 1000;
    const running: { ingress?: Ingress; stop?: Promise<() => Promise<void>> } = {};
    const serving = createServing(() => {
      openPort().catch(() => undefined);
    });
    const starting: RequestListener = createStartingApp({ serving, log });
    const listening = { host, keepAliveMs: keepAliveSeconds * 1000, tls: config.tls };
    /**
     * Opened at the end of the start, because a proxy without health checks sends requests as soon as the port is open.
     * A start that has to wait opens it at once, so that a liveness probe passes.
     */
    function openPort(): Promise<() => Promise<void>> {
      running.stop ??= open(
        (req, res) => {
          (running.ingress?.app ?? starting)(req, res);
        },
        {
          ...listening,
          port,
          setting: 'PORT',
          maxConnections,
          drainMs: drainSeconds * 1000,
          graceMs: Math.max(wholeMs - CLOSING_MS, wholeMs / 2),
          onGraceOver: () => running.ingress?.stopWaiting(),
        },
        closer,
      );
      return running.stop;
    }
    const at = { port: metricsPort, host, setting: 'METRICS_PORT' };
    await openHealthServer(at, config.metrics, closer, () => running.ingress);
    const ingress = await composeIngress(config, log, closer, { serving });
    await serve(
      ingress.adminApp,
      {
        ...listening,
        port: adminPort,
        host: adminHost,
        setting: 'ADMIN_PORT',
        graceMs: 1_000,
        maxConnections: Math.min(maxConnections, ADMIN_CONNECTIONS_MAX),
      },
      closer,
    );
    await ingress.untilWorkersKnow();
    running.ingress = ingress;
    serving.waitFor({});
    const stop = await openPort();
    // Closed first: answers that are open need the stores.
    closer.defer(
      'PORT',
      () => {
        ingress.stopServing();
        return stop();
      },
      { limitMs: Infinity },
    );
    log.info(`The ingress listens on ${host}:${port}, its administration on ${adminHost}:${adminPort}.`);
  },
});
