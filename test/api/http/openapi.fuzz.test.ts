import { afterAll, beforeAll, expect, it } from '@jest/globals';

import { serve } from '../../../api/http/serve.ts';
import { runFuzz } from '../../fuzz/fuzz/run-fuzz.ts';
import { endpointsOf } from '../../fuzz/read-document.ts';
import { SCOPES } from '../../../shared/domain/api-key.ts';
import { freePort } from '../../../scripts/embedded/ports.ts';
import { createCloser } from '../../../shared/lifecycle/closer.ts';
import { readDocument } from '../../support/openapi.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService } from '../../support/use-service.ts';

/** A tenth of E15 (docs/faults.md); a larger one found nothing that this one with another seed does not. */
const REQUESTS = 300;
const FUZZ_MS = 120_000;
let url: string;
/** The app behind the server that the ingress makes: it has its own word for what never reaches the app. */
const closer = createCloser(() => undefined);
const service = useService({ env: { PAYMENTS: 'test', TRUST_PROXY: 'loopback' } });
beforeAll(async () => {
  const port = await freePort();
  await serve(service.express, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 1_000 }, closer);
  url = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  await closer.close();
});

it(
  'answers whatever is sent as the document says, and never with a 5xx',
  async () => {
    const { key } = await service.startTenant({ credits: 100_000_000 });
    const api = apiOf(service, key);
    const byScope: Record<string, string> = {};
    for (const scope of SCOPES) byScope[scope] = (await makeKey(api, { scopes: [scope] })).value;
    const document = await readDocument(service);

    const { faults, statuses, succeeded } = await runFuzz({
      ...{ document, keys: { all: key, byScope }, seed: 15, count: REQUESTS, parallel: 4 },
      urlOf: () => url,
    });

    expect(faults).toEqual([]);
    // It has come through the guards, and has been refused by more than these.
    expect(succeeded.size).toBeGreaterThan(endpointsOf(document).length / 2);
    for (const status of [200, 201, 400, 401, 403, 404, 405]) expect(statuses).toHaveProperty(String(status));
  },
  FUZZ_MS,
);
