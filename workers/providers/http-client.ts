import type { Socket } from 'node:net';

import { Axios, AxiosHeaders } from 'axios';
import { Agent, buildConnector } from 'undici';
import type { Dispatcher } from 'undici';

import { NetworkError } from './http-call.ts';
import type { HttpCall, HttpHead, TakePart, ScheduleRead } from './http-call.ts';
import { createCachedLookup } from '../../shared/http/resolve-name.ts';
import { skipContinue } from '../../shared/http/interim-answers.ts';

/** A connection that can be left unread for a while. */
interface PacedSocket {
  /** From now on reads when `later` calls back. Undefined: as soon as something comes. */
  pace(later: ScheduleRead | undefined): void;
  /** An answer has ended; another call may follow. */
  rest(): void;
  /** True of a connection that has brought an answer before, and not a byte since: its server may have given it up. */
  isStale(): boolean;
}

interface PacedSockets {
  connect: buildConnector.connector;
  /** The connection whose data or end undici is handling; undefined: it speaks HTTP/2, where many calls share one. */
  current(): PacedSocket | undefined;
}

/** The stream's high-water mark. With one byte Node.js stops after each part and calls `_read` when it has been taken. */
const ONE_PART = 1;

function paceable(socket: Socket): PacedSocket {
  const answers = skipContinue(socket);
  const read = socket._read.bind(socket);
  let hasServed = false;
  let later: ScheduleRead | undefined;
  let readOn: (() => void) | undefined;

  socket._read = (size) => {
    if (later === undefined) {
      read(size);
      return;
    }
    const act = () => {
      if (readOn !== act) return;
      readOn = undefined;
      if (!socket.destroyed) read(size);
    };
    readOn = act;
    later(act);
  };

  return {
    pace(wanted) {
      later = wanted;
      if (later === undefined) readOn?.();
    },
    rest() {
      hasServed = true;
      answers.next();
    },
    isStale: () => hasServed && !answers.hasBegun(),
  };
}

/**
 * Makes connections whose reads can wait: a read, with all that follows from it, costs as much for the text of 80 ms as
 * for that of 20 ms (docs/decisions/0006-answer-streams.md).
 */
function createPacedSockets(options: buildConnector.BuildOptions): PacedSockets {
  // undici passes the option on, although its types do not have it.
  const roomForOne = { ...options, highWaterMark: ONE_PART };
  const connect = buildConnector(roomForOne);
  let current: PacedSocket | undefined;
  return {
    current: () => current,
    connect(target, callback) {
      connect(target, (...connected) => {
        const [error, socket] = connected;
        if (error !== null || ('alpnProtocol' in socket && socket.alpnProtocol === 'h2')) {
          callback(...connected);
          return;
        }
        const paced = paceable(socket);
        const enter = () => {
          current = paced;
        };
        const leave = () => {
          current = undefined;
        };
        socket.on('readable', enter).on('error', enter).on('close', enter);
        // undici listens from here on, between the two.
        callback(...connected);
        socket.on('readable', leave).on('error', leave).on('close', leave);
      });
    },
  };
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Idle connections to a provider are kept for the next request. */
const KEEP_ALIVE_MS = 30_000;

type Connections = ReturnType<typeof createConnections>;

/** Connections of one process; the caller's own timers limit headers and body (run-provider-call.ts). */
function createConnections() {
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
    async close(): Promise<void> {
      await Promise.all([agent.destroy(), opener.destroy()]);
    },
  };
}

function optionsOf({ endpoint, headers, body }: HttpCall): Dispatcher.DispatchOptions {
  const { origin, path, headers: shared } = endpoint;
  return { origin, path, method: 'POST', headers: { ...shared, ...headers }, body };
}

interface AnswerEvents {
  onOver: (status: number, error: Error | undefined) => void;
  onThrown: (error: Error) => void;
}

/** Gathers an answer, and hands over all that one read of the socket brought, in one microtask. */
function createHandOver(answered: HttpCall, { onOver, onThrown }: AnswerEvents) {
  let call: HttpCall | undefined = answered;
  let head: HttpHead | undefined;
  let status = 0;
  let take: TakePart | undefined;
  /** Each part is a chunk of HTTP's: a stream's many events are read in one go. */
  let parts: Buffer[] = [];
  let over: { error?: Error } | undefined;
  let isScheduled = false;

  function handOver(): void {
    isScheduled = false;
    try {
      if (call !== undefined && head !== undefined) take = call.onHead(head);
      head = undefined;
      const [first] = parts;
      if (take !== undefined && first !== undefined) {
        const whole = parts.length === 1 ? first : Buffer.concat(parts);
        parts = [];
        take(whole);
      }
    } catch (error) {
      onThrown(error as Error);
    }
    if (call !== undefined && over !== undefined) onOver(status, over.error);
  }

  function handOverSoon(): void {
    if (isScheduled) return;
    isScheduled = true;
    queueMicrotask(handOver);
  }

  return {
    head(received: HttpHead): void {
      status = received.status;
      head = received;
      handOverSoon();
    },
    part(part: Buffer): void {
      parts.push(part);
      handOverSoon();
    },
    end(error?: Error): void {
      over = error === undefined ? {} : { error };
      handOverSoon();
    },
    letGo(): void {
      call = head = take = undefined;
      parts = [];
    },
  };
}

/**
 * Resolves with the status at the end of the body. Lets go of the call then: undici's own request, which knows this
 * handler, lives on until V8's next full collection (docs/benchmarks/performance-log.md).
 */
function dispatch({ agent, opener, sockets }: Connections, sentCall: HttpCall): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let call: HttpCall | undefined = sentCall;
  let sent: Dispatcher.DispatchController | undefined;
  let stopped: Error | undefined;
  let socket: PacedSocket | undefined;
  const answer = createHandOver(sentCall, {
    onOver(status, error) {
      end();
      if (error === undefined) resolve(status);
      else reject(new NetworkError(error, sent !== undefined));
    },
    onThrown: close,
  });

  function end(): void {
    // The connection may serve another call.
    socket?.pace(undefined);
    call?.signal.removeEventListener('abort', onAbort);
    call = socket = undefined;
    answer.letGo();
  }
  function close(reason: Error): void {
    if (call === undefined) return;
    stopped = reason;
    end();
    reject(reason);
    sent?.abort(reason);
  }
  function onAbort(): void {
    // The reasons of aborts are errors here, and so is what is thrown.
    if (call !== undefined) close(call.signal.reason as Error);
  }

  if (sentCall.signal.aborted) {
    onAbort();
    return promise;
  }
  sentCall.signal.addEventListener('abort', onAbort, { once: true });
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      sent = controller;
      // The call was stopped while it waited for its connection.
      if (stopped !== undefined) controller.abort(stopped);
    },
    onResponseStart(_controller, status, received) {
      // Early hints and the like come before the answer.
      if (status < 200) return;
      const header = (name: string) => {
        const value = received[name];
        return typeof value === 'string' ? value : undefined;
      };
      answer.head({ status, header, close });
    },
    onResponseData(_controller, part) {
      answer.part(part);
      if (call?.scheduleRead === undefined) return;
      // The socket is known only while its data is handed over.
      socket ??= sockets.current();
      socket?.pace(call.scheduleRead());
    },
    onResponseEnd() {
      sockets.current()?.rest();
      answer.end();
    },
    onResponseError(_controller, error) {
      if (call !== undefined && sockets.current()?.isStale() === true) {
        // Where the server gives up idle connections without a word, each of them would be a failure of the provider.
        opener.dispatch(optionsOf(call), handler);
        return;
      }
      answer.end(error);
    },
  };
  agent.dispatch(optionsOf(sentCall), handler);
  return promise;
}

/** Outgoing HTTP to providers. Every status is an answer. */
export type HttpClient = ReturnType<typeof createHttpClient>;

const same = (data: unknown): unknown => data;
/** The answer's own headers go to `onHead`. */
const NO_HEADERS = new AxiosHeaders();

/**
 * Bare axios has no defaults to merge, headers to copy or body to transform (docs/decisions/0011-provider-adapters.md).
 * undici carries the calls: Node's own HTTP client costs a third more CPU per call, and a stream between socket and
 * reader as much again. Redirects are not followed.
 */
export function createHttpClient() {
  const connections = createConnections();
  const client = new Axios({ transformRequest: [same], transformResponse: [same] });
  return {
    /** Resolves at the end of the body. Rejects with the signal's reason, what a callback threw, or a NetworkError. */
    async post(call: HttpCall): Promise<void> {
      await client.request({
        method: 'post',
        adapter: async (config) => {
          const status = await dispatch(connections, call);
          return { status, statusText: '', headers: NO_HEADERS, config, data: undefined };
        },
      });
    },
    close: connections.close,
  };
}
