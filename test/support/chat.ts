import type { Server } from 'node:http';

import request from 'supertest';

import type { TestService } from './service.ts';
import { waitFor, waitUntil } from './wait-for.ts';

export { waitFor, waitUntil };

/** The least valid chat body. */
export function chatOf(content: string, more: object = {}): object {
  return { messages: [{ role: 'user', content }], ...more };
}

export function postChat(app: Server, key: string, body: object | string): request.Test {
  return request(app).post('/platform/v1/chat').auth(key, { type: 'bearer' }).type('json').send(body);
}

/** Reads a whole stream as text, as supertest does not know its content type; the body of an error is an object. */
export function postStream(app: Server, key: string, body: object | string): request.Test {
  return request(app)
    .post('/platform/v1/chat/stream')
    .auth(key, { type: 'bearer' })
    .type('json')
    .buffer(true)
    .parse(readText)
    .send(body);
}

/** For `parse`: a stream as text, the body of an error as an object. */
export function readText(res: request.Response, callback: (error: null, body: unknown) => void): void {
  let text = '';
  res.setEncoding('utf8');
  res.on('data', (part: string) => (text += part));
  res.on('end', () => {
    const isError = String(res.headers['content-type']).startsWith('application/json');
    callback(null, isError ? (JSON.parse(text) as unknown) : text);
  });
}

export interface SseEvent {
  id: number;
  /** Undefined for `[DONE]`. */
  chunk: Record<string, unknown> | undefined;
}

/** The data events of an SSE text; comments are left out. */
export function parseSse(text: string): SseEvent[] {
  return text
    .replaceAll(/^:.*\n/gm, '')
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const id = Number(/^id: (\d+)$/m.exec(block)?.[1]);
      const data = /^data: ([^\n]*)$/m.exec(block)?.[1] ?? '';
      return { id, chunk: data === '[DONE]' ? undefined : (JSON.parse(data) as Record<string, unknown>) };
    });
}

/**
 * The error object of a response; throws where its request id is not that of the header
 * (docs/spec.md#codes).
 */
export function errorOf(response: request.Response): Record<string, unknown> {
  const { error } = response.body as { error?: Record<string, unknown> };
  if (error === undefined) throw new Error(`No error object in a ${response.status}: ${response.text}`);
  if (error['request_id'] !== response.headers['x-request-id']) throw new Error('request_id differs from X-Request-Id');
  return error;
}

/** The text of a stream's increments, joined. */
export function textOf(events: readonly SseEvent[]): string {
  return events.map(({ chunk }) => choiceOf(chunk).delta.content ?? '').join('');
}

/** The only choice of a chunk; of `[DONE]` an empty one. */
export function choiceOf(chunk: Record<string, unknown> | undefined): {
  delta: { role?: string; content?: string };
  finish_reason: string | null;
} {
  const choices = chunk?.['choices'] as ReturnType<typeof choiceOf>[] | undefined;
  return choices?.[0] ?? { delta: {}, finish_reason: null };
}

/** The ledger entry of a request, once it is settled. */
export function ledgerOf(service: TestService, response: { headers: object }) {
  const requestId = requestIdOf(response);
  return waitFor(() => service.models.ledger.findOne({ requestId }).lean(), `the ledger entry of ${requestId}`);
}

/** Resolves once nothing of the tenant is held or waits for settlement; throws where anything was charged. */
export async function expectUncharged(service: TestService, tenantId: string, credits: number): Promise<void> {
  const tenant = await waitFor(async () => {
    const { body } = await service.admin('get', `/tenants/${tenantId}`);
    return body.held === 0 ? body : undefined;
  }, 'the end of the hold');
  if (tenant.balance !== credits) throw new Error(`Charged: ${String(tenant.balance)} of ${credits} credits are left`);
  const entries = await service.models.ledger.countDocuments({ tenantId, type: 'usage' });
  if (entries > 0) throw new Error(`There are ${entries} ledger entries`);
}

export function requestIdOf({ headers }: { headers: object }): string {
  return String((headers as Record<string, unknown>)['x-request-id']);
}
