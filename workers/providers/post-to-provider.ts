import { brotliDecompressSync, inflateRawSync, unzipSync, zstdDecompressSync } from 'node:zlib';

import { BodyTooLargeError, NetworkError, collectBody } from './http-call.ts';
import type { HttpCall, HttpHead, TakePart } from './http-call.ts';
import type { HttpClient } from './http-client.ts';
import { OversizedError, ProviderError, faultOfAnswer, parseError, parseRetryAfter } from './provider.ts';
import type { ProviderCall } from './provider.ts';

/** Adds a path to a base URL, with or without a slash at its end; a query (Azure's `api-version`) stays behind it. */
export function endpointUrl(baseUrl: string, path: string): string {
  const [base = '', query] = baseUrl.split('?');
  return `${base.replace(/\/+$/, '')}${path}${query === undefined ? '' : `?${query}`}`;
}

/** The longest answer (ANSWER_UNITS_MAX) in any script, escaped, with room to spare. */
export const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** 131,072 tokens, each an event of 1 KiB. A stream is read, not collected. */
export const STREAM_BYTES_MAX = ANSWER_BYTES_MAX * 16;
const CODED_BYTES_MAX = ANSWER_BYTES_MAX * 4;
const ERROR_BYTES_MAX = 64 * 1024;

/** A body's end is waited for so long once at most usage is missing: its connection can then serve another call. */
const END_WAIT_MS = 1_000;

/** Thrown by a sink that needs no more: the call ends without a failure. */
export class EnoughError extends Error {
  override readonly name = 'EnoughError';
}

export interface AnswerReader {
  take: TakePart;
  /** True once nothing of the answer is missing: how its body ends does not matter any more. */
  isWhole(): boolean;
  /** The same as a guess, which is asked for after each part. */
  seemsWhole(): boolean;
}

const CLOSING_BRACE = 125;
const SPACE = 32;

export function readDocument(maxBytes: number): AnswerReader & { text(): string } {
  const body = collectBody(maxBytes);
  let last = 0;
  return {
    take(part) {
      body.take(part);
      last = part.at(-1) ?? last;
    },
    text: body.text,
    isWhole() {
      try {
        JSON.parse(body.text());
        return true;
      } catch {
        return false;
      }
    },
    seemsWhole: () => last === CLOSING_BRACE || last <= SPACE,
  };
}

const LIMITS = { maxOutputLength: CODED_BYTES_MAX };
type Decoder = (bytes: Buffer) => Buffer;
const unzip: Decoder = (bytes) => unzipSync(bytes, LIMITS);
const DECODERS: ReadonlyMap<string, Decoder> = new Map(
  Object.entries<Decoder>({
    gzip: unzip,
    'x-gzip': unzip,
    deflate(bytes) {
      try {
        return unzip(bytes);
      } catch {
        // Some servers leave the two bytes of the format's head out (RFC 9110 section 8.4.1.2).
        return inflateRawSync(bytes, LIMITS);
      }
    },
    br: (bytes) => brotliDecompressSync(bytes, LIMITS),
    zstd: (bytes) => zstdDecompressSync(bytes, LIMITS),
  }),
);

interface CodedReader extends AnswerReader {
  end(): void;
}

/** Reads a body in a coding that was not asked for: in one go at its end, because no server is known that streams so. */
function readCoded(decoder: Decoder, reader: AnswerReader): CodedReader {
  const body = collectBody(CODED_BYTES_MAX);
  function decode(): Buffer {
    try {
      return decoder(body.bytes());
    } catch {
      // The coding is another one than its name says, or it was cut.
      throw new ProviderError('transient', 'The provider sent a body in a coding that cannot be read');
    }
  }
  return {
    take: body.take,
    end() {
      reader.take(decode());
    },
    isWhole: () => false,
    seemsWhole: () => false,
  };
}

function refusalOf({ status, header }: HttpHead, body: string): ProviderError {
  const error = parseError(body);
  return new ProviderError(faultOfAnswer(status, error), `The provider answered ${status} (${error.word})`, {
    status,
    retryAfterMs: parseRetryAfter(header, Date.now()),
  });
}

/** Network failures and cut bodies are the provider's fault. Aborts, and what a sink throws, pass unchanged. */
function toProviderError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof BodyTooLargeError) return new OversizedError(error);
  if (!(error instanceof NetworkError)) return error;
  const fault = error.code === 'UND_ERR_CONNECT_TIMEOUT' ? 'silent' : 'transient';
  const code = error.code === '' ? 'no code' : error.code;
  const details = { isRefusal: !error.wasSent, cause: error };
  return new ProviderError(fault, `The connection to the provider failed (${code})`, details);
}

/**
 * Posts, and passes the body of a 2xx to `onAnswer`'s reader; any other status rejects with the error in the answer.
 * Resolves with whether the body has ended: once the answer is whole, a held, cut or reset connection, a time limit and
 * an abort are no failure.
 */
export async function postToProvider(
  http: HttpClient,
  call: Omit<HttpCall, 'onHead'> & Pick<ProviderCall, 'onHead' | 'onBytes'>,
  onAnswer: (head: HttpHead) => AnswerReader,
  endWaitMs = END_WAIT_MS,
): Promise<boolean> {
  let refused: HttpHead | undefined;
  let reader: AnswerReader | undefined;
  let coded: CodedReader | undefined;
  let timer: NodeJS.Timeout | undefined;
  const reply = readDocument(ERROR_BYTES_MAX);

  function openReader(head: HttpHead): AnswerReader {
    // Some gateways answer 201.
    if (head.status >= 300) refused = head;
    reader = refused === undefined ? onAnswer(head) : reply;
    // A body in no coding has many names: `identity`, `utf-8`, `none`.
    const decoder = DECODERS.get((head.header('content-encoding') ?? '').trim().toLowerCase());
    if (decoder === undefined) return reader;
    coded = readCoded(decoder, reader);
    return coded;
  }

  let isEnded = false;
  try {
    await http.post({
      ...call,
      onHead(head) {
        call.onHead?.(head);
        const { take, isWhole, seemsWhole } = openReader(head);
        const onTime = () => {
          timer = undefined;
          if (isWhole()) head.close(new EnoughError());
        };
        return (part) => {
          call.onBytes?.();
          take(part);
          if (timer === undefined && seemsWhole()) timer = setTimeout(onTime, endWaitMs);
        };
      },
    });
    coded?.end();
    isEnded = true;
  } catch (error) {
    const isWhole = reader?.isWhole() === true;
    // If the body of a refusal is too large or cut off, the status alone counts.
    if (refused !== undefined && (isWhole || !call.signal.aborted))
      throw refusalOf(refused, isWhole ? reply.text() : '');
    if (!isWhole) throw toProviderError(error, call.signal);
  } finally {
    clearTimeout(timer);
  }
  if (refused !== undefined) throw refusalOf(refused, reply.text());
  return isEnded;
}
