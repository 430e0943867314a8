import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

import { mayReadMetrics } from '../shared/infra/metrics/metrics-access.ts';
import type { MetricsAccess } from '../shared/infra/metrics/metrics-access.ts';
import type { Readiness } from '../shared/lifecycle/readiness.ts';

export interface HealthServerDeps {
  readiness: Readiness;
  metrics: { contentType: string; render(): Promise<string> };
}

function send(res: ServerResponse, status: number, body: string, type = 'application/json; charset=utf-8'): void {
  res.writeHead(status, { 'Content-Type': type }).end(body);
}

const NO_TOKEN = '{"status":"send METRICS_TOKEN as a bearer token"}';
const UNAVAILABLE = '{"status":"unavailable","checks":{"worker":"it is starting"}}';

/**
 * A worker's three pages, for operators and schedulers only; Express stays in the ingress. `worker` is undefined while
 * it is still being put together.
 */
export function createHealthServer(worker: () => HealthServerDeps | undefined, access: MetricsAccess): Server {
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const deps = worker();
    if (req.url === '/health/live') {
      send(res, 200, '{"status":"ok"}');
    } else if (req.url !== '/health/ready' && req.url !== '/metrics') {
      send(res, 404, '{"status":"unknown path"}');
    } else if (req.url === '/metrics' && !mayReadMetrics(req, access)) {
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
  return createServer((req, res) => {
    answer(req, res).catch(() => {
      send(res, 500, '{"status":"failed"}');
    });
  });
}
