import { request } from 'node:http';
import type { Agent } from 'node:http';

import type { WireAnswer } from '../check-answer.ts';
import type { FuzzRequest } from './make-request.ts';

/** Longer than any answer takes here: streams end by themselves. */
const TIMEOUT_MS = 30_000;

export interface SendOptions {
  /** Without a path. */
  url: string;
  /** Absent: no key is sent. */
  key: string | undefined;
  agent: Agent;
  headers?: Record<string, string>;
}

/** Sends what no ordinary client would send, and reads the whole answer. Rejects where there is none. */
export function send({ method, path, headers, body }: FuzzRequest, options: SendOptions): Promise<WireAnswer> {
  const { hostname, port } = new URL(options.url);
  return new Promise((resolve, reject) => {
    const call = request({
      hostname,
      port,
      method,
      path,
      agent: options.agent,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        ...options.headers,
        ...headers,
        ...(options.key === undefined ? {} : { Authorization: `Bearer ${options.key}` }),
        ...(body?.contentType === undefined ? {} : { 'Content-Type': body.contentType }),
        ...(body?.contentEncoding === undefined ? {} : { 'Content-Encoding': body.contentEncoding }),
        'Content-Length': String(body?.bytes.length ?? 0),
      },
    });
    call.once('error', reject);
    call.once('response', (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('error', reject);
      response.once('end', () => {
        const given = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
        resolve({
          status: response.statusCode ?? 0,
          headers: Object.fromEntries(given) as Record<string, string>,
          text: Buffer.concat(parts).toString(),
        });
      });
    });
    call.end(body?.bytes);
  });
}
