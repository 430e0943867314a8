import { pageOf, toListPage } from '../../../shared/contracts/list-page.ts';
import { afterReset } from '../../../shared/domain/breaker.ts';
import type { ProviderRepository } from '../../../shared/mongo/routing/provider-repository.ts';
import type { BreakerStore } from '../../../shared/redis/stores/breaker-store.ts';
import { defineAdminEndpoint, ok, exampleList, json, listQuery } from '../../contract/endpoint.ts';
import { findProvider } from '../providers/provider-settings.ts';
import {
  BREAKER_EXAMPLE,
  breakerEventResource,
  breakerListSchema,
  breakerSchema,
  toBreakerResource,
} from './breakers-resource.ts';

export interface BreakersDeps {
  providers: ProviderRepository;
  breakers: BreakerStore;
}

const listBreakers = defineAdminEndpoint({
  method: 'GET',
  path: '/breakers',
  tag: 'Routing',
  summary: 'List circuit breakers',
  description: 'One for each provider, shared by all workers.',
  query: listQuery,
  answers: { 200: json('A page of circuit breakers.', breakerListSchema) },
  examples: { all: { query: { order: 'asc' }, status: 200, answer: exampleList(BREAKER_EXAMPLE) } },
  async handle({ query }, { providers, breakers }: BreakersDeps) {
    const [rows, snapshot] = await Promise.all([providers.all(), breakers.readAll()]);
    const page = pageOf(rows, query, (row) => row._id);
    return ok(
      toListPage(page, query.limit, (row) => toBreakerResource(row, snapshot.breakers.get(row._id), snapshot.now)),
    );
  },
});

const listBreakerEvents = defineAdminEndpoint({
  method: 'GET',
  path: '/breakers/events',
  tag: 'Routing',
  summary: 'List changes of circuit breakers',
  query: listQuery,
  answers: { 200: json('A page of changes.', breakerEventResource.listSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(breakerEventResource.example) } },
  async handle({ query }, { breakers }: BreakersDeps) {
    return ok(toListPage(await breakers.events(query), query.limit, breakerEventResource.of));
  },
});

const resetBreaker = defineAdminEndpoint({
  method: 'POST',
  path: '/breakers/:provider/reset',
  tag: 'Routing',
  summary: 'Reset a circuit breaker',
  description: 'Closes the breaker and clears its failures. Needs no body.',
  answers: { 200: json('The circuit breaker.', breakerSchema) },
  examples: { reset: { status: 200, answer: BREAKER_EXAMPLE } },
  async handle({ params }, { providers, breakers }: BreakersDeps) {
    const row = await findProvider(providers, params.provider);
    const { breaker, now } = await breakers.change(row._id, afterReset);
    return ok(toBreakerResource(row, breaker, now));
  },
});

/** The circuit breaker of every provider (docs/spec.md#breaker). */
export const breakersEndpoints = { listBreakers, listBreakerEvents, resetBreaker };
