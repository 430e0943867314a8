import type request from 'supertest';

import { apiOf } from './tenant-api.ts';
import type { CallApi } from './tenant-api.ts';
import type { TestService } from './service.ts';

/** What `POST /keys` answers. */
export interface KeyBody {
  id: string;
  value: string;
  redacted_value: string;
  status: string;
  mode: string;
  scopes: string[];
  limits: { rpm: number; tpm: number; daily_requests: number };
  expires_at: number | null;
  last_used_at: number | null;
  previous_value_expires_at: number | null;
}

/** Makes a key; throws where it is refused. */
export async function makeKey(api: CallApi, body: object = {}): Promise<KeyBody> {
  const response = await api('post', '/keys', body);
  if (response.status !== 201) throw new Error(`The key was refused: ${response.text}`);
  return response.body as KeyBody;
}

/** What a key is answered by an endpoint that every valid key may call. */
export function tryKey(service: TestService, value: string): Promise<request.Response> {
  return apiOf(service, value)('get', '/models');
}
