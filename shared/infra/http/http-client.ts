import type { Readable } from 'node:stream';

import axios from 'axios';

import { createProviderAgent, createUndiciAdapter } from './undici-adapter.ts';

export interface HttpAnswer {
  status: number;
  /** Undefined where the server sent none. */
  header(name: string): string | undefined;
  /** Must be read or destroyed by the caller, else its connection stays busy. */
  body: Readable;
}

/** Outgoing HTTP to providers. Every status is an answer; only a failed connection rejects. */
export interface HttpClient {
  post(url: string, headers: Record<string, string>, body: string, signal: AbortSignal): Promise<HttpAnswer>;
  close(): Promise<void>;
}

export function createHttpClient(): HttpClient {
  const agent = createProviderAgent();
  const client = axios.create({
    adapter: createUndiciAdapter(agent),
    responseType: 'stream',
    // The adapter hands the body through as it is, in both directions.
    transformRequest: [(data: unknown) => data],
    transformResponse: [(data: unknown) => data],
    validateStatus: () => true,
    proxy: false,
  });
  return {
    async post(url, headers, body, signal) {
      const answer = await client.post<Readable>(url, body, {
        headers: { 'Content-Type': 'application/json', ...headers },
        signal,
      });
      return {
        status: answer.status,
        header: (name) => {
          const value: unknown = answer.headers[name.toLowerCase()];
          return typeof value === 'string' ? value : undefined;
        },
        body: answer.data,
      };
    },
    close: () => agent.destroy(),
  };
}

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
}

/** Reads a whole body as text; throws BodyTooLargeError past `maxBytes` and drops the rest. */
export async function readText(body: Readable, maxBytes: number): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBytes) {
      body.destroy();
      throw new BodyTooLargeError(`The body exceeds ${maxBytes} bytes`);
    }
    parts.push(part);
  }
  return (parts.length === 1 ? (parts[0] ?? Buffer.alloc(0)) : Buffer.concat(parts)).toString('utf8');
}
