import type { Lab } from '../lab/lab.ts';

/** One provider of a tier; all of them are the simulated provider under different names. */
export interface FaultyRoute {
  provider: string;
  /** With the settings of the simulated provider behind `?`. */
  model: string;
  priority?: number;
  contextWindow?: number;
}

/** Makes the providers and routes both tiers to them; workers follow within a second. */
export async function routeTo(lab: Lab, routes: readonly FaultyRoute[], settings: object = {}): Promise<void> {
  const api = lab.admin();
  const provider = { kind: 'simulated', base_url: `${lab.providerUrl}/v1`, max_retries: 1, ...settings };
  for (const name of new Set(routes.map((route) => route.provider)))
    await api.send('PUT', `/admin/v1/providers/${name}`, provider);
  const targets = routes.map(({ provider: name, model, priority = 1, contextWindow = 128_000 }) => ({
    provider: name,
    model,
    priority,
    weight: 1,
    context_window: contextWindow,
  }));
  // The rates of the lab.
  for (const [tier, rate] of [
    ['mobius', 1],
    ['oloid', 4],
  ] as const)
    await api.send('PUT', `/admin/v1/tiers/${tier}`, { rates: { prompt: rate, completion: rate }, targets });
}

export interface BreakerView {
  provider: string;
  state: string;
  reason: string | null;
}

export async function breakerOf(lab: Lab, provider: string): Promise<BreakerView | undefined> {
  const list = await lab.admin().find('/admin/v1/breakers?limit=100');
  // What api/admin/breakers/breakers-resource.ts writes.
  return (list?.['data'] as BreakerView[]).find((breaker) => breaker.provider === provider);
}

/** The changes of one breaker's state, oldest first. */
export async function breakerChanges(lab: Lab, provider: string): Promise<{ to: string; errors: number }[]> {
  const list = await lab.admin().find('/admin/v1/breakers/events?limit=100&order=asc');
  const events = list?.['data'] as { data: { provider: string; to: string; errors: Record<string, number> } }[];
  return events
    .filter(({ data }) => data.provider === provider)
    .map(({ data }) => ({ to: data.to, errors: Object.values(data.errors).reduce((sum, count) => sum + count, 0) }));
}
