import type { Router } from 'express';

import { TIERS } from '../../../shared/contracts/chat-request.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';

/** OpenAI's list wants a date; the tiers came with the service's first version. */
const TIERS_SINCE = Date.UTC(2026, 10, 21) / 1000;

/** `GET /models`: the tiers, in OpenAI's form; any valid key may read it (docs/spec/contract.md section 3). */
export function createModelsRoute({ serve }: { serve: ServeEndpoints }): Router {
  const data = TIERS.map((id) => ({ id, object: 'model', created: TIERS_SINCE, owned_by: 'parley' }));
  return serve({
    listModels: (_req, res) => {
      res.json({ object: 'list', data });
    },
  });
}
