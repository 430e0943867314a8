import { QueryClient } from '@tanstack/preact-query';
import createClient from 'openapi-fetch';

import type { Session } from './session.ts';

interface ErrorBody {
  error?: { code?: string; message?: string; param?: string };
}

/** An answer that is no success, in the words of the service. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  /** The field at fault. */
  readonly param: string | undefined;

  constructor(response: Response, body: ErrorBody) {
    const { error = {} } = body;
    super(error.message ?? `The service answered with status ${response.status}.`);
    this.status = response.status;
    this.code = error.code ?? 'internal_error';
    this.param = error.param;
    this.requestId = response.headers.get('X-Request-Id') ?? undefined;
  }
}

/** Returns the body of an answer that is not a success, or an empty one where a proxy has sent a page. */
async function bodyOf(response: Response): Promise<ErrorBody> {
  try {
    return (await response.json()) as ErrorBody;
  } catch {
    return {};
  }
}

/** A typed client of one of the service's documents. `base` is relative to the page. */
export function createApi<Paths extends object>(base: string, session: Pick<Session, 'secret' | 'end'>) {
  const baseUrl = new URL(base, location.href).href.replace(/#.*$/, '');

  /** Sends the session's secret along; an answer that is no success is thrown. A refused secret ends the session. */
  async function send(request: Request): Promise<Response> {
    const secret = session.secret();
    if (secret !== undefined) request.headers.set('Authorization', `Bearer ${secret}`);
    const response = await fetch(request, { cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' });
    if (response.ok) return response;
    const error = new ApiError(response, await bodyOf(response));
    if (error.status === 401) session.end(error.message);
    throw error;
  }

  return {
    client: createClient<Paths>({ baseUrl, fetch: send }),
    /** For what has no JSON: streams, files, lines of a batch. */
    raw: (path: string, init?: RequestInit) => send(new Request(`${baseUrl}${path}`, init)),
    baseUrl,
  };
}

/** The JSON body of a call; `send` has thrown every failure. Some calls could answer with CSV, which is asked for elsewhere. */
export async function ok<Body>(
  call: Promise<{ data?: Body; response: Response }>,
): Promise<Exclude<NonNullable<Body>, string>> {
  const { data, response } = await call;
  if (typeof data !== 'object' || data === null) throw new ApiError(response, {});
  return data as Exclude<NonNullable<Body>, string>;
}

/** A refusal does not change by itself; what the network or an overload caused may. */
const isWorthRetrying = (count: number, error: Error) =>
  count < 2 && !(error instanceof ApiError && error.status < 500 && error.status !== 429);

/** The same for a secret that is only tried. */
export const tryOut = <Paths extends object>(base: string, secret: string) =>
  createApi<Paths>(base, { secret: () => secret, end: () => undefined });

/** A page that is opened again within ten seconds shows what is known: a key's limit is not spent on clicks. */
export const queries = new QueryClient({
  defaultOptions: { queries: { staleTime: 10_000, retry: isWorthRetrying, refetchOnWindowFocus: true } },
});
