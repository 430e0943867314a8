import request from 'supertest';

import type { WireAnswer } from '../fuzz/check-answer.ts';
import { writeQuery } from '../fuzz/examples.ts';
import type { ExampleRequest } from '../fuzz/examples.ts';
import type { Endpoint, ServedDocument } from '../fuzz/read-document.ts';
import { wireName } from '../../api/contract/path-parameters.ts';
import type { PathParam } from './endpoints.ts';
import type { TestService } from './service.ts';

/** The document as a client gets it. */
export async function readDocument({ app }: Pick<TestService, 'app'>): Promise<ServedDocument> {
  const response = await request(app).get('/platform/v1/openapi.json');
  return JSON.parse(response.text) as ServedDocument;
}

/** Whatever came, as text. */
async function toWireAnswer(response: Response): Promise<WireAnswer> {
  return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() };
}

/** Values of the path's parameters, by their names on the wire. */
export function wireValues(resources: Partial<Record<PathParam, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(resources).map(([name, value]) => [wireName(name), value]));
}

/** Sends a request as the document tells it, over a real socket. */
export async function sendExample(
  { url }: Pick<TestService, 'url'>,
  { method, template }: Endpoint,
  { query, headers, contentType, body }: Omit<ExampleRequest, 'name' | 'status'>,
  { key, values }: { key?: string; values: Record<string, string> },
): Promise<WireAnswer> {
  const path = template.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(values[name] ?? 'x'));
  const response = await fetch(`${url}${path}${writeQuery(query)}`, {
    method: method.toUpperCase(),
    headers: {
      ...headers,
      ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
      ...(contentType === undefined ? {} : { 'Content-Type': contentType }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return toWireAnswer(response);
}
