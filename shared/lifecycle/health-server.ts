import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

import { BUILD } from '../config/load-config.ts';
import { mayReadMetrics } from '../metrics/registry.ts';
import type { MetricsAccess } from '../metrics/registry.ts';
import type { Closer } from './closer.ts';
import type { Readiness } from './readiness.ts';
import { listen } from './run-process.ts';

export interface HealthServerDeps {
  readiness: { details: Readiness['details'] };
  metrics: { contentType: string; render(): Promise<string> };
}

const PATHS: readonly string[] = ['/health/live', '/health/ready', '/metrics'];
const METHODS: readonly string[] = ['GET', 'HEAD'];

/** Milliseconds for a request to arrive; these have no body. */
const ARRIVAL_MS = 10_000;
/** Node checks for slow requests this often per time limit; by default every 30 s. */
const CHECKS_A_LIMIT = 10;

function send(res: ServerResponse, status: number, body: string, type = 'application/json; charset=utf-8'): void {
  res.writeHead(status, { 'Content-Type': type }).end(body);
}

const NO_TOKEN = '{"status":"send METRICS_TOKEN as a bearer token"}';
const WRONG_METHOD = '{"status":"this path answers GET and HEAD only"}';
const UNAVAILABLE = '{"status":"unavailable","checks":{"process":"it is starting"}}';

/** For operators and schedulers, without Express. `running` is undefined until the process has started. */
export function createHealthServer(
  running: () => HealthServerDeps | undefined,
  access: MetricsAccess,
  arrivalMs = ARRIVAL_MS,
): Server {
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const deps = running();
    if (!PATHS.includes(req.url ?? '')) {
      send(res, 404, '{"status":"unknown path"}');
    } else if (!METHODS.includes(req.method ?? '')) {
      res.setHeader('Allow', METHODS.join(', '));
      send(res, 405, WRONG_METHOD);
    } else if (req.url === '/health/live') {
      send(res, 200, JSON.stringify({ status: 'ok', ...BUILD }));
    } else if (req.url === '/metrics' && !mayReadMetrics(req, access)) {
      res.setHeader('WWW-Authenticate', 'Bearer');
      send(res, 401, NO_TOKEN);
    } else if (deps === undefined) {
      send(res, 503, UNAVAILABLE);
    } else if (req.url === '/metrics') {
      send(res, 200, await deps.metrics.render(), deps.metrics.contentType);
    } else {
      const { ready, checks } = await deps.readiness.details();
      send(res, ready ? 200 : 503, JSON.stringify({ status: ready ? 'ok' : 'unavailable', checks }));
    }
  }
  const times = {
    headersTimeout: arrivalMs,
    requestTimeout: arrivalMs,
    connectionsCheckingInterval: arrivalMs / CHECKS_A_LIMIT,
  };
  return createServer(times, (req, res) => {
    answer(req, res).catch(() => {
      send(res, 500, '{"status":"failed"}');
    });
  });
}

/** Port 0 turns the server off. */
export async function openHealthServer(
  { port, host, setting }: { port: number; host: string; setting: string },
  access: MetricsAccess,
  closer: Closer,
  running: () => HealthServerDeps | undefined,
): Promise<void> {
  if (port === 0) return;
  const server = createHealthServer(running, access);
  await listen(server, port, host, setting);
  closer.defer('health', () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
}
