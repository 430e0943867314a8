import { Router } from 'express';
import type { RequestHandler } from 'express';

import { TIERS } from '../../../shared/contracts/chat-request.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';

export interface ModelsRouteDeps {
  authenticate: RequestHandler;
  identify: RequestHandler;
  countRequest: RequestHandler;
}

/** OpenAI's list wants a date; the tiers came with the service's first version. */
const TIERS_SINCE = Date.UTC(2026, 10, 21) / 1000;

/** `GET /models`: the tiers, in OpenAI's form; any valid key may read it (contract.md section 3). */
export function createModelsRoute({ authenticate, identify, countRequest }: ModelsRouteDeps): Router {
  const router = Router();
  const data = TIERS.map((id) => ({ id, object: 'model', created: TIERS_SINCE, owned_by: 'parley' }));
  router
    .route('/models')
    .get(authenticate, countRequest, (_req, res) => {
      res.json({ object: 'list', data });
    })
    .all(identify, methodNotAllowed('GET'));
  return router;
}
