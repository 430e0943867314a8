import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';

const TIMEOUT_MS = 15_000;

export interface Answer {
  status: number;
  body: Record<string, unknown>;
}

/**
 * One call to a process on this machine, with JSON or, where the body is a text, a form. Certificates are not checked:
 * behind `TLS_CERT_FILE` is the process that was just started, and the certificate's name is hardly ever the loopback
 * address.
 */
export function callJson(
  method: string,
  url: string,
  options: { token?: string; body?: unknown; timeoutMs?: number } = {},
): Promise<Answer> {
  const send = url.startsWith('https:') ? httpsRequest : httpRequest;
  const { body } = options;
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const type = typeof body === 'string' ? 'application/x-www-form-urlencoded' : 'application/json';
  return new Promise((resolve, reject) => {
    const call = send(url, {
      method,
      agent: false,
      rejectUnauthorized: false,
      signal: AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS),
      headers: {
        ...(options.token === undefined ? {} : { Authorization: `Bearer ${options.token}` }),
        ...(text === undefined ? {} : { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) }),
      },
    });
    call.once('error', reject);
    call.once('response', (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('error', reject);
      response.once('end', () => {
        resolve({ status: response.statusCode ?? 0, body: parseObject(Buffer.concat(parts).toString()) });
      });
    });
    call.end(text);
  });
}

/** Rejects unless the process behind `url` reports that it is ready. */
export async function assertReady(url: string): Promise<void> {
  const { status, body } = await callJson('GET', url, { timeoutMs: 3_000 });
  if (status !== 200) throw new Error(`${url} answered ${status}: ${JSON.stringify(body)}`);
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
