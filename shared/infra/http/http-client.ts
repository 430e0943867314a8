import { Axios } from 'axios';

import { SentCall } from './http-call.ts';
import type { HttpCall } from './http-call.ts';
import { createConnections, createUndiciAdapter } from './undici-adapter.ts';

/** Outgoing HTTP to providers. Every status is an answer. */
export interface HttpClient {
  /** Resolves at the end of the body. Rejects with the signal's reason, what a callback threw, or a NetworkError. */
  post(call: HttpCall): Promise<void>;
  close(): Promise<void>;
}

const same = (data: unknown): unknown => data;

/**
 * Bare axios: no defaults to merge, no headers to copy and no body to transform
 * (docs/decisions/0011-provider-adapters.md).
 */
export function createHttpClient(): HttpClient {
  const connections = createConnections();
  const client = new Axios({
    adapter: createUndiciAdapter(connections),
    transformRequest: [same],
    transformResponse: [same],
  });
  return {
    async post(call) {
      await client.request({ method: 'post', data: new SentCall(call) });
    },
    close: connections.close,
  };
}
