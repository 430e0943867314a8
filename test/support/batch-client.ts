import { request as httpRequest } from 'node:http';

import request from 'supertest';

import { chatOf } from './chat.ts';
import type { TestService, TestTenant } from './service.ts';

export const NDJSON = 'application/x-ndjson';

export interface BatchItem {
  custom_id: unknown;
  body: unknown;
}

export function itemOf(customId: string, more: object = {}): BatchItem {
  return { custom_id: customId, body: chatOf('Hi', more) };
}

export function itemsOf(count: number, content = 'Hi'): BatchItem[] {
  return Array.from({ length: count }, (_, index) => ({ custom_id: `line-${index}`, body: chatOf(content) }));
}

export function ndjsonOf(items: readonly unknown[]): string {
  return items.map((item) => JSON.stringify(item)).join('\n');
}

/** Sends bytes as they are; JSON unless the headers say otherwise. */
export function postBatch(
  { app }: Pick<TestService, 'app'>,
  key: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
): request.Test {
  const all = { 'Content-Type': 'application/json', ...headers };
  const call = request(app).post('/platform/v1/batches').auth(key, { type: 'bearer' }).set(all);
  // supertest would encode a string as JSON.
  return call.serialize((sent: unknown) => sent as string).send(body);
}

export function postLines(
  service: Pick<TestService, 'app'>,
  key: string,
  items: readonly unknown[],
  headers: Record<string, string> = {},
): request.Test {
  return postBatch(service, key, ndjsonOf(items), { 'Content-Type': NDJSON, ...headers });
}

/** A POST of which the body is still to be written. */
export function openPost({ url }: Pick<TestService, 'url'>, key: string, type = NDJSON, path = '/batches') {
  const call = httpRequest(`${url}/platform/v1${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': type },
  });
  // A test that breaks off hears of it.
  call.on('error', () => undefined);
  return call;
}

/** How many batches and lines of a tenant are stored. */
export async function storedOf({ models }: TestService, { tenantId }: TestTenant): Promise<[number, number]> {
  return Promise.all([models.batches.countDocuments({ tenantId }), models.batchLines.countDocuments({ tenantId })]);
}

export interface ResultLine {
  custom_id: string | null;
  request_id: string;
  response?: Record<string, unknown>;
  error?: Record<string, unknown>;
}

export async function resultsOf({ app }: TestService, key: string, batchId: string): Promise<ResultLine[]> {
  const { text } = await request(app)
    .get(`/platform/v1/batches/${batchId}/results`)
    .auth(key, { type: 'bearer' })
    .buffer(true)
    .parse((res, callback) => {
      let all = '';
      res.setEncoding('utf8');
      res.on('data', (part: string) => (all += part));
      res.on('end', () => {
        callback(null, all);
      });
    })
    .then((response) => ({ text: String(response.body) }));
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as ResultLine);
}
