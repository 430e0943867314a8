import type { Tracing } from '../../shared/infra/tracing/tracing.ts';
import { contextOf } from './request-context.ts';
import type { Step } from './request-context.ts';

/** What puts a request into line. Constants: a span takes nothing of its name from a caller. */
const ROUTES: ReadonlyMap<string, string> = new Map(
  ['/chat', '/chat/stream', '/chat/completions'].map((path) => [path, `/platform/v1${path}`]),
);

/** Stands at `/platform/v1` where calls are traced: the span of a chat call, whatever is answered. */
export function createTraceRequest(tracing: Tracing): Step {
  return (req, res) => {
    const route = req.method === 'POST' ? ROUTES.get(req.path) : undefined;
    if (route !== undefined) {
      const context = contextOf(res);
      const { requestId } = context;
      const parent = req.get('traceparent');
      const span = tracing.receive({ requestId, parent, route, method: req.method, scheme: req.protocol });
      context.traceparent = span.traceparent;
      res.once('close', () => {
        // A caller who leaves ahead of the status line got none.
        span.end(res.headersSent ? res.statusCode : undefined);
      });
    }
  };
}
