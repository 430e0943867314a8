import type { Tracing } from '../../shared/infra/tracing/tracing.ts';
import { contextOf } from './request-context.ts';
import type { Step } from './request-context.ts';

/**
 * Opens the span of a chat call and ends it with the response. Stands behind authentication, so that a flood of strangers
 * fills no queue of spans. `route` is a constant, so that no part of a span's name comes from a caller.
 */
export function createTraceRequest(tracing: Tracing): (route: string) => Step {
  return (route) => (req, res) => {
    const context = contextOf(res);
    const { requestId } = context;
    const caller = req.get('traceparent');
    const span = tracing.receive({ requestId, caller, route, method: req.method, scheme: req.protocol });
    context.traceparent = span.traceparent;
    res.once('close', () => {
      // A caller who left before the status line was sent received no status.
      span.end(res.headersSent ? res.statusCode : undefined);
    });
  };
}
