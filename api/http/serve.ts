import { readFileSync } from 'node:fs';
import { createServer, STATUS_CODES } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';

import { CHAT_LIMITS } from '../../shared/contracts/chat-request.ts';
import { toErrorObject } from '../../shared/errors/error-body.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { addressHeaders } from '../admission/limit-headers.ts';
import type { Config } from '../../shared/config/load-config.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import { listen } from '../../shared/lifecycle/run-process.ts';
import { expectLate } from './ask-for-body.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { registerAnswers } from './open-answers.ts';
import type { OpenAnswers } from './open-answers.ts';
import { PACE } from './read-body.ts';
import { dropSlowReaders } from './slow-readers.ts';

/** How long a client may go on sending, so that it can read the refusal before the connection ends. */
const LINGER_MS = 1_000;

/** Faults for which Node's parser has a status of its own. Every other fault is a 400. */
const REFUSALS: Record<string, { status: number; message: string }> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The headers are too large; send fewer or shorter ones.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, message: 'The chunk extensions are too large; send none.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive; send it again.' },
};
const MALFORMED = { status: 400, message: 'The request is not valid HTTP; check what sends it.' };

/** An answer without Node's own, with which the connection ends. */
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
 * Answers what Node's parser refuses with the uniform error object (docs/spec/interface.md section 7), and closes. A
 * fault ends nothing that came whole before it: the refusal follows the answers to that.
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
    // The fault may lie within the last request.
    const before = open.findLast(({ req }) => req.complete);
    const own = open.at(-1) === before ? undefined : open.at(-1);
    // A client that ends its side loses the answers that are under way, within a request as behind one.
    const hasLeft = error.code === 'ECONNRESET' || (error.code === 'HPE_INVALID_EOF_STATE' && before !== undefined);
    if (!socket.writable || hasLeft) socket.destroy();
    else if (before !== undefined) before.once('finish', refuse);
    // It has its answer, whatever follows.
    else if (own?.headersSent === true) own.once('finish', end);
    else refuse();
  });
}

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/**
 * Answers `CONNECT`, which asks for a tunnel (RFC 9110 section 9.3.6), and closes, behind the answers to what came before;
 * Node would close without a word. Node gives such a connection up, with all its limits, so what is not through soon is cut.
 */
function refuseTunnels(server: Server, answers: OpenAnswers): void {
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

/** How long a client may go on sending a body that nobody reads, because its request was answered. */
const UNREAD_MS = 5_000;

/**
 * Closes connections of requests that were answered before their body had arrived. What still arrives within `unreadMs`
 * is discarded, and a client that has sent everything by then keeps its connection.
 */
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

/** Longer than the idle time of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_MS = 65_000;
const HEADERS_MS = 20_000;
/** By itself Node looks every 30 s for requests that came too slowly. */
const CHECKS_A_LIMIT = 10;
/** The largest chat body at its slowest; a batch of 50 MiB comes over a line that is hardly faster. */
const REQUEST_MS = HEADERS_MS + (CHAT_LIMITS.bodyBytesMax / PACE.bytesPerSecond) * 1_000;

export interface ServeOptions {
  port: number;
  host: string;
  /** The setting that names the port, for the sentence when it is in use. */
  setting: string;
  tls?: Config['http']['tls'];
  /** Further connections are closed at once. */
  maxConnections?: number;
  /** How long open requests may take to end at closing; milliseconds. */
  graceMs: number;
  /** How long a head may take to arrive, and a tenth; milliseconds. */
  headersMs?: number;
  /** Called when the grace is over, just before the connections that are left are cut. */
  onGraceOver?: () => void;
}

function create({ tls, headersMs = HEADERS_MS }: ServeOptions): Server {
  const options = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: headersMs,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: headersMs / CHECKS_A_LIMIT,
    // `requireClearHead` refuses these requests with the uniform error object.
    requireHostHeader: false,
  };
  if (tls === undefined) return createServer(options);
  try {
    return createTlsServer({ ...options, cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) });
  } catch (cause) {
    throw new Error('The certificate cannot be used; check TLS_CERT_FILE and TLS_KEY_FILE.', { cause });
  }
}

/** How often the server looks for connections whose last answer has been sent. */
const IDLE_CHECK_MS = 50;
/** Time to send the last answers, which say that the server stops. */
const LAST_WORDS_MS = 300;

function announceEndWith(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader('Connection', 'close');
}

/**
 * Makes every answer from now on say that its connection ends. A client that keeps its connection would else send one
 * request after the other to a server that stops, until it is cut, or just as the connection is closed.
 */
function announceEnd(server: Server, answers: OpenAnswers): void {
  answers.forEach(announceEndWith);
  // Before the app, which may answer at once.
  server.prependListener('request', (_req, res) => {
    announceEndWith(res);
  });
}

/**
 * `server.close()` alone waits for open streams without end (docs/architecture/facts.md section 4): they get the grace and
 * are cut then. Idle keep-alive connections are closed at once.
 */
async function closeServer(server: Server, { graceMs, onGraceOver }: ServeOptions): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  const idle = setInterval(() => {
    server.closeIdleConnections();
  }, IDLE_CHECK_MS);
  const cut = setTimeout(() => {
    server.closeAllConnections();
  }, graceMs + LAST_WORDS_MS);
  const over = setTimeout(() => onGraceOver?.(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(over);
  clearTimeout(cut);
}

/** Serves an app until `closer` closes it. */
export async function serve(app: RequestListener, options: ServeOptions, closer: Closer): Promise<void> {
  const { port, host, setting } = options;
  const server = create(options);
  const answers = registerAnswers(server);
  server.on('request', oneAtATime(app, answers));
  if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections;
  refuseMalformed(server, answers);
  refuseTunnels(server, answers);
  closeUnread(answers);
  expectLate(server);
  closer.defer('slow readers', dropSlowReaders(answers));
  await listen(server, port, host, setting);
  closer.defer(
    setting,
    () => {
      announceEnd(server, answers);
      return closeServer(server, options);
    },
    { limitMs: Infinity },
  );
}
