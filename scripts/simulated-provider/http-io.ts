import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestError } from './chat-request.ts';

/** Parley's largest body, with its history and instruction, still fits. */
const BODY_BYTES_MAX = 25 * 1024 * 1024;

/** Reads and parses a body. One that is too large is read to its end and dropped, so its sender sees the answer. */
export async function readJson(req: IncomingMessage): Promise<unknown> {
  const text = await readBody(req);
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError(400, 'The request body is not valid JSON.');
  }
}

function readBody(req: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    req.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes <= BODY_BYTES_MAX) parts.push(part);
      else parts.length = 0;
    });
    req.on('end', () => {
      if (bytes > BODY_BYTES_MAX) reject(new RequestError(413, `The request body is over ${BODY_BYTES_MAX} bytes.`));
      else resolve(parts.length === 1 ? String(parts[0]) : Buffer.concat(parts).toString());
    });
    req.on('error', reject);
  });
}

export function sendJson(
  res: ServerResponse,
  status: number,
  body: object | string,
  headers: Readonly<Record<string, string | number>> = {},
): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers });
  res.end(text);
}

/** Ends a connection with a TCP reset; data that the other side has received but not read yet can be lost. */
export function resetConnection(res: ServerResponse): void {
  res.socket?.resetAndDestroy();
}

/** The `type` and `code` of OpenAI's errors. */
const KINDS: Readonly<Record<number, { type?: string; code: string }>> = {
  401: { code: 'invalid_api_key' },
  402: { type: 'insufficient_quota', code: 'insufficient_quota' },
  429: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
};

/** Sends an error as the protocol of the request has it: Anthropic's clients tell it from an answer by its `type`. */
export function sendError(
  res: ServerResponse,
  status: number,
  message: string,
  param: string | null = null,
  headers: Readonly<Record<string, number>> = {},
): void {
  const { type = status >= 500 ? 'server_error' : 'invalid_request_error', code = null } = KINDS[status] ?? {};
  const body = { error: { message, type, param, code } };
  sendJson(res, status, res.req.url?.startsWith('/v1/messages') === true ? { type: 'error', ...body } : body, headers);
}
