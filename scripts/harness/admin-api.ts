import { callJson } from './http.ts';
import type { Answer } from './http.ts';

export type AdminApi = ReturnType<typeof createAdminApi>;

/** The administration interface (docs/spec.md#administration), as `npm start` uses it. */
export function createAdminApi(adminUrl: string, token: string) {
  return {
    /** The resource, or undefined if it does not exist. */
    async find(path: string): Promise<Record<string, unknown> | undefined> {
      const answer = await callJson('GET', `${adminUrl}${path}`, { token });
      if (answer.status === 404) return undefined;
      return bodyOf(answer, `GET ${path}`);
    },
    /** Rejects with the service's own message if it refuses. */
    async send(method: 'POST' | 'PUT', path: string, body: unknown): Promise<Record<string, unknown>> {
      return bodyOf(await callJson(method, `${adminUrl}${path}`, { token, body }), `${method} ${path}`);
    },
  };
}

function bodyOf({ status, body }: Answer, call: string): Record<string, unknown> {
  if (status >= 200 && status < 300) return body;
  const { error } = body;
  const message = typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : '';
  throw new Error(`The administration interface answered ${call} with ${status}: ${message}`);
}
