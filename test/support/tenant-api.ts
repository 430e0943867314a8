import request from 'supertest';

import type { TestService } from './service.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Calls the public API below `/platform/v1` with a key. */
export type CallApi = (
  method: Method,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<request.Response>;

export function apiOf(service: Pick<TestService, 'app'>, key: string): CallApi {
  return (method, path, body, headers = {}) => {
    const call = request(service.app)[method](`/platform/v1${path}`).auth(key, { type: 'bearer' }).set(headers);
    return Promise.resolve(body === undefined ? call : call.send(body as object));
  };
}
