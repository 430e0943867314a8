import { useQuery } from '@tanstack/preact-query';

import type { components, paths } from '../../../scripts/admin-api.d.ts'; // npm run types
import { allPages } from '../../../scripts/all-pages.ts';
import { createApi, ok, tryOut } from '../shell/api.ts';
import { createSession } from '../shell/session.ts';

const BASE = '../v1';

export type Schemas = components['schemas'];

export const session = createSession('parley-admin-token');
export const { client: api } = createApi<paths>(BASE, session);

/** Throws where a token is refused. */
export const tryToken = (token: string) => ok(tryOut<paths>(BASE, token).client.GET('/token'));

/** The token that this tab is signed in with. */
export const useOwnToken = () =>
  useQuery({ queryKey: ['token'], queryFn: () => ok(api.GET('/token')), staleTime: 60_000 }).data;

/** A token that only reads is shown nothing that changes anything. */
export const useMayWrite = (): boolean => useOwnToken()?.role === 'write';

/** Pages that people watch ask again this often. */
export const LIVE = { refetchInterval: 5_000 } as const;

/** The providers and tiers, which several pages show. */
export const useProviders = () =>
  useQuery({
    queryKey: ['providers'],
    queryFn: () => allPages((query) => ok(api.GET('/providers', { params: { query } }))),
    ...LIVE,
  });
export const useTiers = () => useQuery({ queryKey: ['tiers'], queryFn: () => ok(api.GET('/tiers')) });

/** Requests whose first text or failure says how the service is: the latest ones, of all tenants. */
export const useLatest = () =>
  useQuery({
    queryKey: ['requests', 'latest'],
    queryFn: () => ok(api.GET('/requests', { params: { query: { limit: 100 } } })),
    ...LIVE,
  });
