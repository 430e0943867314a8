import type { Tracing } from '../../shared/infra/tracing/tracing.ts';
import { contextOf } from './request-context.ts';
import type { Step } from './request-context.ts';

/** The paths that create chat requests. They are constants, so that no part of a span's name comes from a caller. */
const ROUTES: ReadonlyMap<string, string> = new Map(
  ['/chat', '/chat/stream', '/chat/completions'].map((path) => [path, `/platform/v1${path}`]),
);

/** Opens the span of a chat call and ends it with the response. Mounted at `/platform/v1` if calls are traced. */
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
        // A caller who left before the status line was sent received no status.
        span.end(res.headersSent ? res.statusCode : undefined);
      });
    }
  };
}
