import { callJson } from './http.ts';
import type { Answer } from './http.ts';

/** The administration interface (docs/spec.md#administration), as `npm start` uses it. */
export interface AdminApi {
  /** The resource, or undefined if it does not exist. */
  find(path: string): Promise<Record<string, unknown> | undefined>;
  /** Rejects with the service's own message if it refuses. */
  send(method: 'POST' | 'PUT', path: string, body: unknown): Promise<Record<string, unknown>>;
}

export function createAdminApi(adminUrl: string, token: string): AdminApi {
  return {
    async find(path) {
      const answer = await callJson('GET', `${adminUrl}${path}`, { token });
      if (answer.status === 404) return undefined;
      return bodyOf(answer, `GET ${path}`);
    },
    async send(method, path, body) {
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
