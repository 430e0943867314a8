import { AxiosHeaders } from 'axios';
import type { AxiosAdapter, AxiosResponse } from 'axios';
import { Agent } from 'undici';
import type { Dispatcher } from 'undici';

import { NetworkError, SentCall } from './http-call.ts';
import type { HttpCall, TakePart } from './http-call.ts';
import { createCachedLookup } from './resolve-name.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** Idle connections to a provider are kept for the next request. */
const KEEP_ALIVE_MS = 30_000;

/** Sockets of one process to providers; the caller's own timers limit headers and body, see provider-call-clock.ts. */
export function createProviderAgent(): Agent {
  return new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup: createCachedLookup() },
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: null,
    pipelining: 1,
  });
}

const NOTHING: TakePart = () => undefined;
/** The answer's own go to `onHead`. */
const NO_HEADERS = new AxiosHeaders();

/** Resolves with the status at the end of the body. */
function dispatch(agent: Dispatcher, { endpoint, headers, body, signal, onHead }: HttpCall): Promise<number> {
  return new Promise((resolve, reject) => {
    let sent: Dispatcher.DispatchController | undefined;
    let status = 0;
    let take = NOTHING;
    const fail = (error: Error) => {
      signal.removeEventListener('abort', onAbort);
      reject(error);
    };
    const onAbort = () => {
      // The reasons of aborts are errors here, and so is what is thrown.
      const reason = signal.reason as Error;
      fail(reason);
      sent?.abort(reason);
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
    if (signal.aborted) {
      onAbort();
      return;
    }
    signal.addEventListener('abort', onAbort, { once: true });
    const options: Dispatcher.DispatchOptions = {
      origin: endpoint.origin,
      path: endpoint.path,
      method: 'POST',
      headers: { ...endpoint.headers, ...headers },
      body,
    };
    agent.dispatch(options, {
      onRequestStart(controller) {
        sent = controller;
        // It was waiting for its connection.
        if (signal.aborted) controller.abort(signal.reason as Error);
      },
      onResponseStart(_controller, statusCode, received) {
        // Early hints and the like come before the answer.
        if (statusCode < 200) return;
        status = statusCode;
        const header = (name: string) => {
          const value = received[name];
          return typeof value === 'string' ? value : undefined;
        };
        take = orEnd(() => onHead({ status, header }));
      },
      onResponseData(_controller, part) {
        orEnd(() => {
          take(part);
        });
      },
      onResponseEnd() {
        signal.removeEventListener('abort', onAbort);
        resolve(status);
      },
      onResponseError(_controller, error) {
        fail(new NetworkError(error));
      },
    });
  });
}

/**
 * axios over undici: Node's own HTTP client costs a third more CPU per call (docs/architecture/facts.md section 9), and
 * a stream between socket and reader as much again. Serves calls of http-client.ts only. Redirects are not followed.
 */
export function createUndiciAdapter(agent: Dispatcher): AxiosAdapter {
  return async (config): Promise<AxiosResponse<undefined>> => {
    const sent: unknown = config.data;
    if (!(sent instanceof SentCall)) throw new TypeError('The adapter serves calls of the HTTP client only');
    const status = await dispatch(agent, sent.call);
    return { status, statusText: '', headers: NO_HEADERS, config, data: undefined };
  };
}
