import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { toErrorObject } from '../../shared/errors/error-body.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { addressHeaders } from './count-requests.ts';
import type { OpenAnswers } from './pipelining.ts';

/** A client may go on sending for this long, so that it can read the refusal before the connection ends. */
const LINGER_MS = 1_000;

/** Faults to which Node's parser gives a status of their own. Every other fault is a 400. */
const REFUSALS: Record<string, { status: number; message: string }> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The headers are too large; send fewer or shorter ones.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, message: 'The chunk extensions are too large; send none.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive; send it again.' },
};
const MALFORMED = { status: 400, message: 'The request is not valid HTTP; check what sends it.' };

/** The text of an answer that is written without Node's help, and with which the connection ends. */
function lastAnswer(status: number, detail: ErrorDetail, more: Readonly<Record<string, string>> = {}): string {
  const requestId = newId('req');
  const error = toErrorObject(detail, requestId);
  const body = JSON.stringify({ error });
  const headers = {
    'X-Request-Id': requestId,
    ...addressHeaders(),
    'X-Content-Type-Options': 'nosniff',
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
    ...more,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`;
}

function answerTo(fault: string): string {
  const { status, message } = REFUSALS[fault] ?? MALFORMED;
  return lastAnswer(status, { code: 'invalid_request', message });
}

/**
 * Answers what Node's parser refuses with the uniform error object (docs/spec.md#error-object), and closes the
 * connection. A fault does not affect complete requests before it: the refusal follows their answers.
 */
export function refuseMalformed(server: Server, answers: OpenAnswers): void {
  const refused = new WeakSet<Duplex>();

  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // The parser also reports everything that follows the first fault.
    if (refused.has(socket)) return;
    refused.add(socket);
    const end = (words = '') => {
      if (socket.writable) socket.end(words);
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    };
    const refuse = () => {
      end(answerTo(error.code ?? ''));
    };
    const open = [...answers.of(socket)].filter((res) => !res.writableFinished);
    // The fault may lie within the last request, so that one is not complete.
    const before = open.findLast(({ req }) => req.complete);
    const own = open.at(-1) === before ? undefined : open.at(-1);
    // A client that ends its side loses the answers under way, even if it left after its last request.
    const hasLeft = error.code === 'ECONNRESET' || (error.code === 'HPE_INVALID_EOF_STATE' && before !== undefined);
    if (!socket.writable || hasLeft) socket.destroy();
    else if (before !== undefined) before.once('finish', refuse);
    // This request already has its answer, whatever follows.
    else if (own?.headersSent === true) own.once('finish', end);
    else refuse();
  });
}

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/**
 * Answers `CONNECT`, which asks for a tunnel (RFC 9110 section 9.3.6), after the answers to earlier requests, and
 * closes; Node would close without an answer. Node no longer limits such a connection, so it is cut soon in any case.
 */
export function refuseTunnels(server: Server, answers: OpenAnswers): void {
  server.on('connect', (_req: IncomingMessage, socket: Duplex) => {
    const refuse = () => {
      const message = `This is no proxy; paths answer ${METHODS} only.`;
      if (socket.writable) socket.end(lastAnswer(405, { code: 'method_not_allowed', message }, { Allow: METHODS }));
    };
    socket.on('error', () => socket.destroy()).resume();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
    const before = [...answers.of(socket)].findLast((res) => !res.writableFinished);
    if (before === undefined) refuse();
    else before.once('finish', refuse);
  });
}

/** A client may keep sending a body that nobody reads for this long after its answer. */
const UNREAD_MS = 5_000;

/** Closes connections whose request was answered before its body came, unless the rest comes within `unreadMs`. */
export function closeUnread(answers: OpenAnswers, unreadMs = UNREAD_MS): void {
  answers.onEnd(({ req, writableFinished }) => {
    if (req.complete || !writableFinished) return;
    const { socket } = req;
    const closing = setTimeout(() => {
      if (req.complete || socket.destroyed) return;
      socket.end();
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    }, unreadMs).unref();
    req.once('close', () => {
      clearTimeout(closing);
    });
  });
}

const LOOK_MS = 5_000;
/** A client that reads nothing for this long counts as gone (docs/decisions/0006-answer-streams.md). */
const DRAIN_MS = 30_000;

/**
 * Cuts clients that leave what is there of an answer unread for `drainMs`; Node would keep answer and connection for as
 * long as they like. A client that reads, or waits for something to read, has all the time it needs. On loopback 60 kB
 * per second were enough, 20 kB too few: the system reports reading in large steps. Times are milliseconds; cutting may
 * take `everyMs` longer. Returns a function that ends the checks.
 */
export function dropSlowReaders(
  answers: OpenAnswers,
  { drainMs = DRAIN_MS, everyMs = LOOK_MS }: { drainMs?: number; everyMs?: number } = {},
): () => void {
  /** Connections with a time limit, and the answer it was set for: Node.js removes the limit after that answer. */
  const limited = new WeakMap<Socket, ServerResponse>();

  function look(res: ServerResponse): void {
    const { socket } = res;
    // This answer waits for an earlier one on its connection.
    if (socket === null) return;
    if (socket.writableLength > 0) {
      if (limited.get(socket) === res) return;
      // A socket also notices progress within a single large write.
      socket.setTimeout(drainMs);
      limited.set(socket, res);
    } else if (limited.delete(socket)) socket.setTimeout(0);
  }

  const looking = setInterval(() => {
    answers.forEach(look);
  }, everyMs).unref();
  return () => {
    clearInterval(looking);
  };
}

/** Requests whose clients wait to be asked for the body. */
const unasked = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Answers `Expect: 100-continue` (RFC 9110 section 10.1.1) once somebody reads the body, which is after all checks that
 * do not need it; Node would ask at once. A refused client does not send its body, and Node closes the connection after
 * the answer. Other expectations are ignored, because Node's own 417 has no error object.
 */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (req, res) => {
    unasked.set(req, res);
    req.once('resume', () => {
      askForBody(req);
    });
    server.emit('request', req, res);
  });
  server.on('checkExpectation', (req, res) => server.emit('request', req, res));
}

/** Call this before reading a body in any way but through its `data` events. Safe to repeat. */
export function askForBody(req: IncomingMessage): void {
  const res = unasked.get(req);
  unasked.delete(req);
  // A body that is only discarded, after its answer, must not be asked for.
  if (res?.headersSent === false) res.writeContinue();
}

/** The body will not come, because its client was never asked for it. */
export function isUnasked(req: IncomingMessage): boolean {
  return unasked.has(req);
}
