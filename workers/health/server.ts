import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

import type { Readiness } from '../../shared/lifecycle/readiness.ts';

export interface HealthServerDeps {
  readiness: Readiness;
  metrics: { contentType: string; render(): Promise<string> };
}

function send(res: ServerResponse, status: number, body: string, type = 'application/json; charset=utf-8'): void {
  res.writeHead(status, { 'Content-Type': type }).end(body);
}

/** A worker's three pages, for operators and schedulers only; Express stays in the ingress. */
export function createHealthServer({ readiness, metrics }: HealthServerDeps): Server {
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    switch (req.url) {
      case '/health/live':
        send(res, 200, '{"status":"ok"}');
        return;
      case '/health/ready': {
        const { ready, checks } = await readiness.check();
        send(res, ready ? 200 : 503, JSON.stringify({ status: ready ? 'ok' : 'unavailable', checks }));
        return;
      }
      case '/metrics':
        send(res, 200, await metrics.render(), metrics.contentType);
        return;
      default:
        send(res, 404, '{"status":"unknown path"}');
    }
  }
  return createServer((req, res) => {
    answer(req, res).catch(() => {
      send(res, 500, '{"status":"failed"}');
    });
  });
}
