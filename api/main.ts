import { environment } from '../shared/config/environment.ts';
import { runProcess } from '../shared/lifecycle/run-process.ts';
import { composeIngress } from './compose.ts';
import { serve } from './serve.ts';

/** What closing takes beside the open requests' grace. */
const CLOSING_MS = 5_000;

await runProcess({
  kind: 'api',
  name: 'api',
  env: environment,
  graceMs: ({ limits }) => limits.shutdownGraceSeconds * 1000 + CLOSING_MS,
  async start(config, log, closer) {
    const { app, adminApp } = await composeIngress(config, log, closer);
    const { host, port, adminPort, tls } = config.http;
    const graceMs = config.limits.shutdownGraceSeconds * 1000;
    await serve(
      adminApp,
      { port: adminPort, host, setting: 'ADMIN_PORT', graceMs: 1_000, ...(tls === undefined ? {} : { tls }) },
      closer,
    );
    await serve(app, { port, host, setting: 'PORT', graceMs, ...(tls === undefined ? {} : { tls }) }, closer);
    log.info(`The ingress listens on ${host}:${port}, its administration on ${host}:${adminPort}.`);
  },
});
