import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

import type { Config } from '../../shared/config/load-config.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import { listen } from '../../shared/lifecycle/run-process.ts';
import { refuseMalformed } from './client-error.ts';

/** Longer than the idle time of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_MS = 65_000;
const HEADERS_MS = 20_000;
/** A batch of 50 MiB over a slow line. */
const REQUEST_MS = 300_000;

export interface ServeOptions {
  port: number;
  host: string;
  /** The setting that names the port, for the sentence when it is in use. */
  setting: string;
  tls?: Config['http']['tls'];
  /** How long open requests may take to end at closing; milliseconds. */
  graceMs: number;
  /** Called when the grace is over, just before the connections that are left are cut. */
  onGraceOver?: () => void;
}

function create(app: RequestListener, tls: ServeOptions['tls']): Server {
  const options = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    // `requireHost` refuses these requests with the uniform error object.
    requireHostHeader: false,
  };
  if (tls === undefined) return createServer(options, app);
  try {
    return createTlsServer({ ...options, cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) }, app);
  } catch (cause) {
    throw new Error('The certificate cannot be used; check TLS_CERT_FILE and TLS_KEY_FILE.', { cause });
  }
}

/** How often connections are looked for whose last answer has been sent. */
const IDLE_CHECK_MS = 50;
/** For the answers that say that the grace is over. */
const LAST_WORDS_MS = 300;

/**
 * `server.close()` alone never ends while streams are open (docs/architecture/facts.md section 4): they get the grace,
 * then they are cut. A connection that a client would keep is closed as soon as its answer is there.
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
  const { port, host, setting, tls } = options;
  const server = create(app, tls);
  refuseMalformed(server);
  // An expectation that is not known is ignored (RFC 9110 section 10.1.1); Node's own 417 would be bare.
  server.on('checkExpectation', app);
  await listen(server, port, host, setting);
  closer.defer(setting, () => closeServer(server, options), { limitMs: Infinity });
}
