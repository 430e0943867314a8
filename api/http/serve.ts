/**
 * The door of the HTTP server: its limits, and how it stops. Connections are bounded in number and in time
 * (connection-guards.ts), and the requests of one connection are served one after the other (pipelining.ts).
 *
 * `server.close()` alone waits for ever for open streams. So a stopping server tells every client that its connection ends,
 * goes on serving until proxies have noticed, closes idle connections, gives open answers their grace, and then cuts
 * them. Most answers end in time, so clients that cannot resume lose nothing
 * (docs/decisions/0020-http-ingress-limits.md).
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

import type { Config } from '../../shared/config/settings.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import { listen } from '../../shared/lifecycle/run-process.ts';
import { closeUnread, dropSlowReaders, deferContinue, refuseMalformed, refuseTunnels } from './connection-guards.ts';
import { serializePipelined, registerAnswers } from './pipelining.ts';
import type { OpenAnswers } from './pipelining.ts';

interface StopOptions {
  /** Connections are still accepted and served for so long, each answer with `Connection: close`; milliseconds. */
  drainMs?: number;
  /** Open requests may take this long to end; milliseconds. */
  graceMs: number;
  /** Called when the grace is over, just before the remaining connections are cut. */
  onGraceOver?: () => void;
}

/** The server looks this often for connections whose last answer has been sent. */
const IDLE_CHECK_MS = 50;
/** Time to send the last answers, which tell clients that the server is stopping. */
const LAST_WORDS_MS = 300;

function announceEndWith(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader('Connection', 'close');
}

/**
 * Makes every answer from now on announce that its connection ends. Otherwise a client with a kept-alive connection
 * would keep sending requests to a stopping server until it is cut, perhaps just as the connection is closed.
 */
function announceEnd(server: Server, answers: OpenAnswers): void {
  answers.forEach(announceEndWith);
  // Registered before the app's listener, which may answer at once.
  server.prependListener('request', (_req, res) => {
    announceEndWith(res);
  });
}

const QUIET_TURN_MS = 0.5;
const QUIET_WITHIN_MS = 1_000;

/**
 * Resolves behind a turn of the event loop that had next to nothing to do. Connections that the kernel holds for a listener
 * are reset with it, and in such a turn it holds none: a tenth of the resets, at a busy server.
 */
async function quietTurn(): Promise<void> {
  const until = performance.now() + QUIET_WITHIN_MS;
  for (let began = performance.now(); began < until; began = performance.now()) {
    await nextTurn();
    if (performance.now() - began < QUIET_TURN_MS) return;
  }
}

/** Gives open streams the grace, then cuts them. Idle keep-alive connections are closed at once. */
async function closeServer(server: Server, { graceMs, onGraceOver }: StopOptions): Promise<void> {
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

/** Stops a server. Resolves once no connection is left. */
async function stopServer(server: Server, answers: OpenAnswers, options: StopOptions): Promise<void> {
  announceEnd(server, answers);
  await pause(options.drainMs ?? 0);
  await quietTurn();
  await closeServer(server, options);
}

const HEADERS_MS = 20_000;
/** By default Node checks for slow requests only every 30 s. */
const CHECKS_A_LIMIT = 10;
/**
 * Those who read a body watch its pace (read-body.ts), so this bounds the others. A batch of 50 MiB has 800 s at the
 * slowest pace, and its lines time to be stored.
 */
const REQUEST_MS = 1_200_000;

export interface ServeOptions extends StopOptions {
  port: number;
  host: string;
  /** The setting that names the port, for the error message when the port is in use. */
  setting: string;
  tls?: Config['tls'];
  /** The most open connections: a further one takes the place of an idle one, or is closed at once. */
  maxConnections?: number;
  /** An idle connection is kept this long; milliseconds. Absent: as long as Node keeps it. */
  keepAliveMs?: number;
  /** A request's head may take this long to arrive, plus up to a tenth; milliseconds. */
  headersMs?: number;
}

function create({ tls: { certFile, keyFile } = {}, keepAliveMs, headersMs = HEADERS_MS }: ServeOptions): Server {
  const options = {
    ...(keepAliveMs === undefined ? {} : { keepAliveTimeout: keepAliveMs }),
    headersTimeout: headersMs,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: headersMs / CHECKS_A_LIMIT,
    // `requireClearHead` refuses these requests with the uniform error object.
    requireHostHeader: false,
  };
  if (certFile === undefined || keyFile === undefined) return createServer(options);
  try {
    return createTlsServer({
      ...options,
      handshakeTimeout: headersMs,
      cert: readFileSync(certFile),
      key: readFileSync(keyFile),
    });
  } catch (cause) {
    throw new Error('The certificate cannot be used; check TLS_CERT_FILE and TLS_KEY_FILE.', { cause });
  }
}

/** Node closes a connection beyond the limit unheard, so an idle one goes as soon as the last place is taken. */
function limitConnections(server: Server, answers: OpenAnswers, most: number): void {
  let open = 0;
  server.maxConnections = most;
  server.on('connection', (socket: Socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
    if (open >= most) answers.longestIdle()?.destroy();
  });
}

/** Serves an app until what is returned stops it. */
export async function open(app: RequestListener, options: ServeOptions, closer: Closer): Promise<() => Promise<void>> {
  const { port, host, setting } = options;
  const server = create(options);
  const answers = registerAnswers(server);
  server.on('request', serializePipelined(app, answers));
  if (options.maxConnections !== undefined) limitConnections(server, answers, options.maxConnections);
  refuseMalformed(server, answers);
  refuseTunnels(server, answers);
  closeUnread(answers);
  deferContinue(server);
  closer.defer('slow readers', dropSlowReaders(answers));
  await listen(server, port, host, setting);
  return () => stopServer(server, answers, options);
}

/** Serves an app until `closer` closes it. */
export async function serve(app: RequestListener, options: ServeOptions, closer: Closer): Promise<void> {
  const stop = await open(app, options, closer);
  closer.defer(options.setting, stop, { limitMs: Infinity });
}
