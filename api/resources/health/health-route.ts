import { Router } from 'express';

import type { Readiness } from '../../../shared/lifecycle/readiness.ts';
import { setAddressHeaders } from '../../admission/limit-headers.ts';

/** `GET /health/live` and `/health/ready` (docs/spec/contract.md section 1); they need no key and touch no limit. */
export function createHealthRoute(readiness: Readiness): Router {
  const router = Router();
  router.use('/health', (_req, res, next) => {
    setAddressHeaders(res);
    next();
  });
  router.get('/health/live', (_req, res) => {
    res.json({ status: 'ok' });
  });
  router.get('/health/ready', async (_req, res) => {
    const { ready, checks } = await readiness.check();
    res.status(ready ? 200 : 503).json({ status: ready ? 'ok' : 'unavailable', checks });
  });
  return router;
}
