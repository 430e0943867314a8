import { STATUS_CODES } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

import { toErrorObject } from '../../shared/errors/error-body.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { addressHeaders } from '../admission/limit-headers.ts';

/** How long a client may go on sending, so that it can read the refusal before the connection ends. */
const LINGER_MS = 1_000;

/** Faults for which Node's parser has a status of its own. Every other fault is a 400. */
const REFUSALS: Record<string, { status: number; message: string }> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The headers are too large; send fewer or shorter ones.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, message: 'The chunk extensions are too large; send none.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive; send it again.' },
};
const MALFORMED = { status: 400, message: 'The request is not valid HTTP; check what sends it.' };

function answerTo(code: string): string {
  const { status, message } = REFUSALS[code] ?? MALFORMED;
  const requestId = newId('req');
  const error = toErrorObject({ code: 'invalid_request', message }, requestId);
  const body = JSON.stringify({ error });
  const headers = {
    'X-Request-Id': requestId,
    ...addressHeaders(),
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`;
}

/**
 * Gives the refusals that Node makes by itself the form of all others (docs/spec/interface.md section 7), and closes.
 */
export function refuseMalformed(server: Server): void {
  const underWay = new WeakMap<Duplex, ServerResponse>();
  const refused = new WeakSet<Duplex>();

  server.on('request', (req, res) => {
    underWay.set(req.socket, res);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // The parser reports everything that follows the first fault, too.
    if (refused.has(socket)) return;
    refused.add(socket);
    const answer = underWay.get(socket);
    const isAnswering = answer?.headersSent === true && !answer.writableFinished;
    if (!socket.writable || isAnswering || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    socket.end(answerTo(error.code ?? ''));
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  });
}
