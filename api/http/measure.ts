import type { RequestHandler } from 'express';

import type { IngressMetrics } from '../../shared/infra/metrics/registry.ts';

/** Counts and times every answer by its route's pattern; paths of no route share one label. */
export function createMeasure({ requests, duration }: Pick<IngressMetrics, 'requests' | 'duration'>): RequestHandler {
  return (req, res, next) => {
    const stop = duration.startTimer();
    res.once('close', () => {
      // Express types `route` as any; it is set once a route has matched.
      const { path = 'none' } = (req.route as { path?: string } | undefined) ?? {};
      requests.inc({ route: path, status: res.statusCode });
      stop({ route: path });
    });
    next();
  };
}
