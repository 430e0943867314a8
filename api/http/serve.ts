import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';

import { CHAT_LIMITS } from '../../shared/contracts/chat-request.ts';
import type { Config } from '../../shared/config/load-config.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import { listen } from '../../shared/lifecycle/run-process.ts';
import { expectLate } from './ask-for-body.ts';
import { closeUnread } from './close-unread.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { registerAnswers } from './open-answers.ts';
import type { OpenAnswers } from './open-answers.ts';
import { PACE } from './read-body.ts';
import { refuseMalformed, refuseTunnels } from './refuse-malformed.ts';
import { dropSlowReaders } from './slow-readers.ts';
import { stopServer } from './stop-server.ts';
import type { StopOptions } from './stop-server.ts';

const HEADERS_MS = 20_000;
/** By default Node checks for slow requests only every 30 s. */
const CHECKS_A_LIMIT = 10;
/** Enough for the largest chat body at the slowest allowed pace; a batch of 50 MiB rarely comes over a slower line. */
const REQUEST_MS = HEADERS_MS + (CHAT_LIMITS.bodyBytesMax / PACE.bytesPerSecond) * 1_000;

export interface ServeOptions extends StopOptions {
  port: number;
  host: string;
  /** The setting that names the port, for the error message when the port is in use. */
  setting: string;
  tls?: Config['http']['tls'];
  /** As many connections are open at most: a further one takes the place of an idle one, or is closed at once. */
  maxConnections?: number;
  /** How long an idle connection is kept; milliseconds. Absent: as long as Node keeps it. */
  keepAliveMs?: number;
  /** How long a request's head may take to arrive, plus up to a tenth; milliseconds. */
  headersMs?: number;
}

function create({ tls, keepAliveMs, headersMs = HEADERS_MS }: ServeOptions): Server {
  const options = {
    ...(keepAliveMs === undefined ? {} : { keepAliveTimeout: keepAliveMs }),
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

/** Serves an app until `closer` closes it. */
export async function serve(app: RequestListener, options: ServeOptions, closer: Closer): Promise<void> {
  const { port, host, setting } = options;
  const server = create(options);
  const answers = registerAnswers(server);
  server.on('request', oneAtATime(app, answers));
  if (options.maxConnections !== undefined) limitConnections(server, answers, options.maxConnections);
  refuseMalformed(server, answers);
  refuseTunnels(server, answers);
  closeUnread(answers);
  expectLate(server);
  closer.defer('slow readers', dropSlowReaders(answers));
  await listen(server, port, host, setting);
  closer.defer(setting, () => stopServer(server, answers, options), { limitMs: Infinity });
}
