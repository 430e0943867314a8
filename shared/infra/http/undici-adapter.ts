import { AxiosError, AxiosHeaders } from 'axios';
import type { AxiosAdapter, AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import { Agent, request } from 'undici';
import type { Dispatcher } from 'undici';

import { createCachedLookup } from './resolve-name.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** Idle connections to a provider are kept for the next request. */
const KEEP_ALIVE_MS = 30_000;

/** Sockets of one process to providers; the caller's own timers limit headers and body, see generate.ts. */
export function createProviderAgent(): Agent {
  return new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup: createCachedLookup() },
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: null,
    pipelining: 1,
  });
}

function headersOf(config: InternalAxiosRequestConfig): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(config.headers.toJSON())) {
    headers[name] = String(value);
  }
  return headers;
}

function toAxiosError(error: unknown, config: InternalAxiosRequestConfig): AxiosError {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : AxiosError.ERR_NETWORK;
  const message = error instanceof Error ? error.message : 'The request failed';
  return new AxiosError(message, code, config, undefined, undefined);
}

/**
 * axios over undici: Node's own HTTP client costs a third more CPU per call (docs/architecture/facts.md section 9).
 * Serves what this service uses of axios: a text body, headers, a signal, and answers as `text` or `stream`. Redirects
 * are not followed.
 */
export function createUndiciAdapter(agent: Dispatcher): AxiosAdapter {
  return async (config): Promise<AxiosResponse> => {
    try {
      const answer = await request(new URL(config.url ?? '', config.baseURL), {
        dispatcher: agent,
        method: (config.method ?? 'get').toUpperCase(),
        headers: headersOf(config),
        body: typeof config.data === 'string' ? config.data : null,
        // axios types its own signal shape; this service hands in AbortSignals only.
        ...(config.signal === undefined ? {} : { signal: config.signal as AbortSignal }),
      });
      return {
        status: answer.statusCode,
        statusText: '',
        headers: new AxiosHeaders(answer.headers as Record<string, string>),
        config,
        data: answer.body,
      };
    } catch (error) {
      throw toAxiosError(error, config);
    }
  };
}
