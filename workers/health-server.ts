import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

import { mayReadMetrics } from '../shared/metrics/registry.ts';
import type { MetricsAccess } from '../shared/metrics/registry.ts';
import type { Readiness } from '../shared/lifecycle/readiness.ts';

export interface HealthServerDeps {
  readiness: Readiness;
  metrics: { contentType: string; render(): Promise<string> };
}

const PATHS: readonly string[] = ['/health/live', '/health/ready', '/metrics'];
const METHODS: readonly string[] = ['GET', 'HEAD'];

/** How long a request may take to arrive; milliseconds. These requests have no body. */
const ARRIVAL_MS = 10_000;
/** How often per time limit Node checks for requests that arrive too slowly; by default it checks every 30 s. */
const CHECKS_A_LIMIT = 10;

function send(res: ServerResponse, status: number, body: string, type = 'application/json; charset=utf-8'): void {
  res.writeHead(status, { 'Content-Type': type }).end(body);
}

const NO_TOKEN = '{"status":"send METRICS_TOKEN as a bearer token"}';
const WRONG_METHOD = '{"status":"this path answers GET and HEAD only"}';
const UNAVAILABLE = '{"status":"unavailable","checks":{"worker":"it is starting"}}';

/**
 * A worker's three pages, for operators and schedulers only; Express stays in the ingress. `worker` is undefined while
 * the worker is still starting.
 */
export function createHealthServer(
  worker: () => HealthServerDeps | undefined,
  access: MetricsAccess,
  arrivalMs = ARRIVAL_MS,
): Server {
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const deps = worker();
    if (!PATHS.includes(req.url ?? '')) {
      send(res, 404, '{"status":"unknown path"}');
    } else if (!METHODS.includes(req.method ?? '')) {
      res.setHeader('Allow', METHODS.join(', '));
      send(res, 405, WRONG_METHOD);
    } else if (req.url === '/health/live') {
      send(res, 200, '{"status":"ok"}');
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
