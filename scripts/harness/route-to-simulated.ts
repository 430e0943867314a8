import type { AdminApi } from './admin-api.ts';

const PROVIDER = 'simulated';
const TIERS = ['mobius', 'oloid', 'embedding'] as const;
/** The default rates of docs/spec.md#price. */
const RATES = {
  mobius: { prompt: 1, completion: 1 },
  oloid: { prompt: 4, completion: 4 },
  embedding: { prompt: 0.1, completion: 0 },
} as const;
/** Routes all tiers to the simulated provider; `model` may contain its settings, as in `sim?chunks=40`. */
export async function routeToSimulated(admin: AdminApi, providerUrl: string, model: string): Promise<void> {
  await admin.send('PUT', `/admin/v1/providers/${PROVIDER}`, { kind: 'simulated', base_url: `${providerUrl}/v1` });
  for (const tier of TIERS) {
    const targets = [{ provider: PROVIDER, model, weight: 1, priority: 1 }];
    await admin.send('PUT', `/admin/v1/tiers/${tier}`, { rates: RATES[tier], targets });
  }
}
