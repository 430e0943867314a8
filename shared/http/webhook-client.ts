import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';

import { Client, buildConnector } from 'undici';
import type { Dispatcher } from 'undici';

import { skipContinue } from './interim-answers.ts';
import { isPublicAddress, readWebhookUrl } from './public-address.ts';
import { createTenantResolver, errorCodeOf } from './resolve-name.ts';
import type { ResolveName } from './resolve-name.ts';

/** `error` is a sentence for the tenant and says nothing of the receiver's reply. */
export interface WebhookReply {
  status?: number;
  error?: string;
}

export type WebhookClient = ReturnType<typeof createWebhookClient>;

export interface WebhookClientOptions {
  allowPrivate: boolean;
  timeoutMs?: number;
  resolve?: ResolveName;
}

/** docs/spec.md#webhooks. */
const TIMEOUT_MS = 15_000;
/** No more of a reply is read, and none of it is kept. */
const REPLY_MAX_BYTES = 64 * 1024;

/** The message is a sentence for the tenant. */
class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

function sentenceOf(error: unknown, timeoutMs: number, signal: AbortSignal): string {
  if (error instanceof Unreachable) return error.message;
  if (signal.aborted) return `The receiver did not answer within ${timeoutMs / 1000} s.`;
  const code = errorCodeOf(error);
  if (/CERT|SSL|TLS|SIGNATURE|ISSUER/.test(code))
    return `The receiver's TLS certificate or handshake failed (${code}).`;
  return `The connection to the receiver failed${code === '' ? '' : ` (${code})`}.`;
}

/** Rejects with the signal's reason when it aborts first; `work` may go on unheeded. */
async function before<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => {
    aborted.reject(new Error('aborted'));
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    if (signal.aborted) abort();
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Reads and throws away a reply; what exceeds the limit, or does not come, does not matter. */
async function discard(body: Dispatcher.ResponseData['body']): Promise<void> {
  let size = 0;
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > REPLY_MAX_BYTES) return;
    }
  } catch {
    // Only the status counts, and it has been read.
  }
}

/** The socket goes to a vetted address, never to what a second look-up says. */
function pinnedTo(addresses: LookupAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses;
    if (options.all === true) callback(null, addresses);
    else callback(null, first?.address ?? '', first?.family ?? 0);
  };
}

/** Some receivers say `100 Continue` before every answer. */
function connectorTo(addresses: LookupAddress[], timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ lookup: pinnedTo(addresses), timeout: timeoutMs });
  return (target, callback) => {
    connect(target, (...connected) => {
      const [error, socket] = connected;
      if (error === null && !('alpnProtocol' in socket && socket.alpnProtocol === 'h2')) skipContinue(socket);
      callback(...connected);
    });
  };
}

async function addressesOf(
  resolve: (host: string) => Promise<LookupAddress[]>,
  allowPrivate: boolean,
  host: string,
  signal: AbortSignal,
): Promise<LookupAddress[]> {
  const family = isIP(host);
  const addresses =
    family === 0
      ? await before(
          signal,
          resolve(host).catch(() => []),
        )
      : [{ address: host, family }];
  if (addresses.length === 0) throw new Unreachable('The host name of the receiver could not be resolved.');
  if (!allowPrivate && !addresses.every(({ address }) => isPublicAddress(address)))
    throw new Unreachable('The host of the receiver is not on the public Internet.');
  return addresses;
}

/**
 * Posts to addresses that tenants have given, on the public Internet only (docs/decisions/0018-webhooks.md): a name is
 * resolved once, all its addresses must be public, and the connection goes to one of them. Each attempt opens a
 * connection, since the name may mean another host later. No redirects, and no proxy of the environment: undici's
 * Client knows neither.
 */
export function createWebhookClient(options: WebhookClientOptions) {
  const { allowPrivate, timeoutMs = TIMEOUT_MS } = options;
  const resolve = options.resolve ?? createTenantResolver({ allowLocalNames: allowPrivate });

  async function post(
    url: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<number> {
    const target = readWebhookUrl(url, allowPrivate);
    if (!target.ok) throw new Unreachable(`The URL of the receiver ${target.fault}.`);
    const addresses = await addressesOf(resolve, allowPrivate, target.host, signal);
    const client = new Client(target.url.origin, {
      connect: connectorTo(addresses, timeoutMs),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    try {
      const path = `${target.url.pathname}${target.url.search}`;
      const reply = await client.request({ method: 'POST', path, headers, body, signal });
      await discard(reply.body);
      return reply.statusCode;
    } finally {
      await client.destroy().catch(() => undefined);
    }
  }

  return {
    /** Never rejects. */
    async send(url: string, headers: Record<string, string>, body: string): Promise<WebhookReply> {
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        return { status: await post(url, headers, body, signal) };
      } catch (error) {
        return { error: sentenceOf(error, timeoutMs, signal) };
      }
    },
  };
}
