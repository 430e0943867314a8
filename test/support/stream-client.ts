import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

import type { Reading, SseEvent } from '../fault/checker/evidence.ts';
import { waitUntil } from './wait-for.ts';

/** An event of the service's streams: `id:` and `data:` lines, ended by an empty one. Comments are no events. */
export interface ParsedEvent {
  seq: number;
  data: string;
}

/** Takes a stream's text as it comes and gives back every event that is complete. */
export function createEventParser(): (text: string) => ParsedEvent[] {
  let rest = '';
  return (text) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => {
      const match = /^(?::.*\n)*id: (\d+)\ndata: ([^\n]*)$/.exec(block);
      if (match !== null) return [{ seq: Number(match[1]), data: match[2] ?? '' }];
      if (block === '') return [];
      throw new Error(`This is no event of a stream: ${block.slice(0, 100)}`);
    });
  };
}

export interface HttpCall {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** When the client leaves by itself. `bytes`: of the answer's body; the rest of what came is not looked at. */
export type LeaveAt = 'posted' | 'head' | 'first-text' | 'before-done' | { bytes: number };

export interface OpenReading {
  /** Grows until `ended`. */
  reading: Reading;
  /** Resolves with the head, or with the end where none comes. */
  head: Promise<void>;
  headers(): IncomingHttpHeaders;
  /** All that came of the body, comments included. */
  text(): string;
  /** Never rejects. */
  ended: Promise<Reading>;
  leave(): void;
}

interface Growing extends Reading {
  events: SseEvent[];
}

interface Chunk {
  id?: string;
  choices?: { delta?: { content?: string }; message?: { content: string }; finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number };
  error?: { code: string };
}

function emptyReading(): Growing {
  return {
    requestId: '',
    hasOwnId: false,
    status: 0,
    sentAt: performance.now(),
    headAt: 0,
    endedAt: 0,
    end: 'open',
    events: [],
    text: '',
    finishReason: undefined,
    errorCode: undefined,
    usage: undefined,
    isDone: false,
    retryAfterSeconds: undefined,
    isReplayed: false,
  };
}

function readChunk(reading: Growing, json: string): void {
  // The service's own schema; what else answers shows in what is missing.
  const { id, choices, usage, error } = JSON.parse(json) as Chunk;
  const choice = choices?.[0];
  reading.text += choice?.delta?.content ?? choice?.message?.content ?? '';
  // With an Idempotency-Key it is the id of the request that was joined.
  if (id !== undefined) Object.assign(reading, { requestId: id, hasOwnId: true });
  reading.finishReason ??= choice?.finish_reason ?? undefined;
  reading.errorCode ??= error?.code;
  if (usage !== undefined) reading.usage = { prompt: usage.prompt_tokens, completion: usage.completion_tokens };
}

function readHead(reading: Growing, { statusCode = 0, headers }: IncomingMessage): void {
  const retryAfter = headers['retry-after'];
  reading.headAt = performance.now();
  reading.status = statusCode;
  reading.requestId = String(headers['x-request-id'] ?? '');
  reading.retryAfterSeconds = retryAfter === undefined ? undefined : Number(retryAfter);
  reading.isReplayed = headers['idempotent-replayed'] === 'true';
}

/** Sends one call over a connection of its own and reads its answer, a stream as it comes. */
export function openReading(call: HttpCall, leaveAt?: LeaveAt): OpenReading {
  const reading = emptyReading();
  let headers: IncomingHttpHeaders = {};
  let raw = '';
  const head = Promise.withResolvers<undefined>();
  const ended = Promise.withResolvers<Reading>();
  const request = httpRequest(call.url, { method: call.method, headers: call.headers, agent: false });

  function finish(how: Reading['end']): void {
    if (reading.end !== 'open') return;
    reading.end = how;
    reading.endedAt = performance.now();
    head.resolve(undefined);
    ended.resolve(reading);
    request.destroy();
  }
  const leave = () => {
    finish('left');
  };

  request.on('error', () => {
    finish('broken');
  });
  request.on('response', (response) => {
    readHead(reading, response);
    ({ headers } = response);
    head.resolve(undefined);
    response.on('error', () => {
      finish('broken');
    });
    response.on('close', () => {
      finish(response.complete ? 'closed' : 'broken');
    });
    if (leaveAt === 'head') leave();
    else readBody(reading, response, { leaveAt, finish, onText: (text) => (raw += text) });
  });
  request.end(call.body, () => {
    if (leaveAt === 'posted') leave();
  });
  return { reading, head: head.promise, headers: () => headers, text: () => raw, ended: ended.promise, leave };
}

interface BodyReader {
  leaveAt: LeaveAt | undefined;
  finish: (how: Reading['end']) => void;
  onText: (text: string) => void;
}

function readBody(reading: Growing, response: IncomingMessage, { leaveAt, finish, onText }: BodyReader): void {
  const type = String(response.headers['content-type']);
  const isStream = type.startsWith('text/event-stream');
  const parse = createEventParser();
  const decoder = new TextDecoder();
  const budget = typeof leaveAt === 'object' ? leaveAt.bytes : Infinity;
  let read = 0;
  let json = '';

  function readStream(text: string): void {
    for (const { seq, data } of parse(text)) {
      if (data === '[DONE]' && leaveAt === 'before-done') {
        finish('left');
        return;
      }
      reading.events.push({ seq, data, at: performance.now() });
      if (data === '[DONE]') reading.isDone = true;
      else readChunk(reading, data);
      if (leaveAt === 'first-text' && reading.text !== '') {
        finish('left');
        return;
      }
    }
  }

  response.on('data', (bytes: Buffer) => {
    if (reading.end !== 'open') return;
    const part = bytes.subarray(0, budget - read);
    read += part.length;
    const text = decoder.decode(part, { stream: true });
    onText(text);
    if (isStream) readStream(text);
    else json += text;
    if (read >= budget) finish('left');
  });
  response.on('end', () => {
    // A proxy's own page is told by its status.
    if (type.startsWith('application/json') && reading.end === 'open' && json !== '') readChunk(reading, json);
    finish('closed');
  });
}

/** A stream of a test's own. */
export interface OpenStream extends Omit<OpenReading, 'reading' | 'head' | 'headers'> {
  status: number;
  requestId: string;
  headers: IncomingHttpHeaders;
  /** What has come so far; grows until `ended`. */
  read: Reading;
  /** Resolves once `part` has come. */
  until(part: string): Promise<void>;
  /** Resolves with all that came once the server has closed the stream in order. */
  end(): Promise<string>;
}

const headersOf = (key: string) => ({ Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' });

/** Resolves with the head: at the first chunk, the first ping or an error. */
export async function openStream(url: string, key: string, body: object, more = {}): Promise<OpenStream> {
  const { reading, head, headers, ...opened } = openReading({
    method: 'POST',
    url: `${url}/platform/v1/chat/stream`,
    headers: { ...headersOf(key), 'Accept-Encoding': 'gzip, br', ...more },
    body: JSON.stringify(body),
  });
  await head;
  const { status, requestId } = reading;
  if (status === 0) throw new Error('No answer came to POST /chat/stream');
  return {
    ...opened,
    status,
    requestId,
    headers: headers(),
    read: reading,
    until: async (part) => {
      await waitUntil(() => opened.text().includes(part), `«${part}» in a stream`);
    },
    end: async () => {
      const { end } = await opened.ended;
      if (end !== 'closed') throw new Error(`The stream did not end in order: ${end}`);
      return opened.text();
    },
  };
}

/** Sequence numbers of the events, in the order of their coming. */
export const seqsOf = ({ events }: Reading) => events.map(({ seq }) => seq);

export function post(url: string, key: string, path: string, body: object, init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/platform/v1${path}`, {
    method: 'POST',
    headers: headersOf(key),
    body: JSON.stringify(body),
    ...init,
  });
}
