import { Axios, AxiosHeaders } from 'axios';
import type { AxiosAdapter, AxiosResponse } from 'axios';
import { Agent } from 'undici';
import type { Dispatcher } from 'undici';

import { NetworkError, SentCall } from './http-call.ts';
import type { HttpCall, TakePart } from './http-call.ts';
import { createPacedSockets } from './paced-sockets.ts';
import type { PacedSocket, PacedSockets } from './paced-sockets.ts';
import { createCachedLookup } from './resolve-name.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** Idle connections to a provider are kept for the next request. */
const KEEP_ALIVE_MS = 30_000;

interface Connections {
  agent: Dispatcher;
  /** Opens a connection for each call. */
  opener: Dispatcher;
  sockets: PacedSockets;
  close(): Promise<void>;
}

/** Of one process to providers; the caller's own timers limit headers and body, see provider-call-clock.ts. */
function createConnections(): Connections {
  const sockets = createPacedSockets({ timeout: CONNECT_TIMEOUT_MS, lookup: createCachedLookup() });
  const settings: Agent.Options = {
    connect: sockets.connect,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: null,
    pipelining: 1,
  };
  const agent = new Agent(settings);
  const opener = new Agent({ ...settings, maxRequestsPerClient: 1 });
  return {
    agent,
    opener,
    sockets,
    async close() {
      await Promise.all([agent.destroy(), opener.destroy()]);
    },
  };
}

const NOTHING: TakePart = () => undefined;
/** The answer's own go to `onHead`. */
const NO_HEADERS = new AxiosHeaders();

function optionsOf({ endpoint, headers, body }: HttpCall): Dispatcher.DispatchOptions {
  const { origin, path, headers: shared } = endpoint;
  return { origin, path, method: 'POST', headers: { ...shared, ...headers }, body };
}

/**
 * Resolves with the status at the end of the body. Lets go of the call at its end: undici's own request, which knows this
 * handler, lives on until V8's next full collection (docs/benchmarks/performance-log.md).
 */
function dispatch({ agent, opener, sockets }: Connections, sentCall: HttpCall): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let call: HttpCall | undefined = sentCall;
  let sent: Dispatcher.DispatchController | undefined;
  let stopped: Error | undefined;
  let status = 0;
  let take = NOTHING;
  /** Came with one read of the socket, each a chunk of HTTP's: a stream's many events are read in one go. */
  let parts: Buffer[] = [];
  let socket: PacedSocket | undefined;
  const end = () => {
    // The connection may serve another call.
    socket?.pace(undefined);
    socket = undefined;
    call?.signal.removeEventListener('abort', onAbort);
    call = undefined;
    take = NOTHING;
    parts = [];
  };
  const fail = (error: Error) => {
    end();
    reject(error);
  };
  const close = (reason: Error) => {
    if (call === undefined) return;
    stopped = reason;
    fail(reason);
    sent?.abort(reason);
  };
  const onAbort = () => {
    // The reasons of aborts are errors here, and so is what is thrown.
    if (call !== undefined) close(call.signal.reason as Error);
  };
  /** undici ends a call, and its connection, where the handler throws. */
  const orEnd = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      fail(error as Error);
      throw error;
    }
  };
  const takeParts = () => {
    const [first] = parts;
    if (first === undefined) return;
    const whole = parts.length === 1 ? first : Buffer.concat(parts);
    parts = [];
    take(whole);
  };
  /** The read of the socket is over. */
  const takeRead = () => {
    try {
      takeParts();
    } catch (error) {
      fail(error as Error);
      sent?.abort(error as Error);
    }
  };
  if (call.signal.aborted) {
    onAbort();
    return promise;
  }
  call.signal.addEventListener('abort', onAbort, { once: true });
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      sent = controller;
      // It was waiting for its connection.
      if (stopped !== undefined) controller.abort(stopped);
    },
    onResponseStart(_controller, statusCode, received) {
      // Early hints and the like come before the answer.
      if (statusCode < 200 || call === undefined) return;
      status = statusCode;
      const header = (name: string) => {
        const value = received[name];
        return typeof value === 'string' ? value : undefined;
      };
      const { onHead } = call;
      take = orEnd(() => onHead({ status, header, close }));
    },
    onResponseData(_controller, part) {
      if (parts.push(part) === 1) queueMicrotask(takeRead);
      if (call?.readLater === undefined) return;
      // Known only while its data is handed over.
      socket ??= sockets.current();
      socket?.pace(call.readLater());
    },
    onResponseEnd() {
      sockets.current()?.rest();
      orEnd(takeParts);
      end();
      resolve(status);
    },
    onResponseError(_controller, error) {
      if (call !== undefined && sockets.current()?.isStale() === true) {
        // Where the server gives up idle connections without a word, each of them would be a failure of the provider.
        opener.dispatch(optionsOf(call), handler);
        return;
      }
      takeRead();
      fail(new NetworkError(error));
    },
  };
  agent.dispatch(optionsOf(call), handler);
  return promise;
}

/**
 * axios over undici: Node's own HTTP client costs a third more CPU per call, and a stream between socket and reader as
 * much again. Serves calls of http-client.ts only. Redirects are not followed.
 */
function createUndiciAdapter(connections: Connections): AxiosAdapter {
  return async (config): Promise<AxiosResponse<undefined>> => {
    const sent: unknown = config.data;
    if (!(sent instanceof SentCall)) throw new TypeError('The adapter serves calls of the HTTP client only');
    const status = await dispatch(connections, sent.call);
    return { status, statusText: '', headers: NO_HEADERS, config, data: undefined };
  };
}

/** Outgoing HTTP to providers. Every status is an answer. */
export type HttpClient = ReturnType<typeof createHttpClient>;

const same = (data: unknown): unknown => data;

/**
 * Bare axios: no defaults to merge, no headers to copy and no body to transform
 * (docs/decisions/0011-provider-adapters.md).
 */
export function createHttpClient() {
  const connections = createConnections();
  const client = new Axios({
    adapter: createUndiciAdapter(connections),
    transformRequest: [same],
    transformResponse: [same],
  });
  return {
    /** Resolves at the end of the body. Rejects with the signal's reason, what a callback threw, or a NetworkError. */
    async post(call: HttpCall): Promise<void> {
      await client.request({ method: 'post', data: new SentCall(call) });
    },
    close: connections.close,
  };
}
