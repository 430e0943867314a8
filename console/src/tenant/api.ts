import { useQuery } from '@tanstack/preact-query';

import type { paths } from '../../public-api.d.ts'; // npm run types
import { createApi, ok, tryOut } from '../shell/api.ts';
import { createSession } from '../shell/session.ts';

const BASE = '../platform/v1';

export const session = createSession('parley-key');
export const { client: api, raw, baseUrl } = createApi<paths>(BASE, session);

export type ApiKey = paths['/key']['get']['responses'][200]['content']['application/json'];
export type Scope = ApiKey['scopes'][number];

/** Throws where a key is refused. */
export const tryKey = (key: string) => ok(tryOut<paths>(BASE, key).client.GET('/key'));

/** The key that this tab is signed in with. */
export const useOwnKey = () =>
  useQuery({ queryKey: ['key'], queryFn: () => ok(api.GET('/key')), staleTime: 60_000 }).data;

export const mayUse = (key: ApiKey | undefined, scope: Scope): boolean =>
  key?.scopes.some((each) => each === '*' || each === scope) ?? false;

/** Tells whether the key of this tab opens an endpoint of this scope; the console shows nothing else. */
export const useScope = (scope: Scope): boolean => mayUse(useOwnKey(), scope);

/** A call as a program makes it, for places that are still empty. */
export function curl(path: string, body?: object, method = body === undefined ? 'GET' : 'POST'): string {
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${baseUrl}${path}`,
    '  -H "Authorization: Bearer $PARLEY_KEY"',
  ];
  if (body !== undefined) lines.push('  -H "Content-Type: application/json"', `  -d '${JSON.stringify(body)}'`);
  return lines.join(' \\\n');
}
