import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';

import type { Reading, SseEvent } from '../checker/evidence.ts';
import { createEventParser } from './sse-events.ts';

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
    head.resolve(undefined);
    response.on('error', () => {
      finish('broken');
    });
    response.on('close', () => {
      finish(response.complete ? 'closed' : 'broken');
    });
    if (leaveAt === 'head') leave();
    else readBody(reading, response, leaveAt, finish);
  });
  request.end(call.body, () => {
    if (leaveAt === 'posted') leave();
  });
  return { reading, head: head.promise, ended: ended.promise, leave };
}

function readBody(
  reading: Growing,
  response: IncomingMessage,
  leaveAt: LeaveAt | undefined,
  finish: (how: Reading['end']) => void,
): void {
  const isStream = String(response.headers['content-type']).startsWith('text/event-stream');
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
    if (isStream) readStream(text);
    else json += text;
    if (read >= budget) finish('left');
  });
  response.on('end', () => {
    if (!isStream && reading.end === 'open' && json !== '') readChunk(reading, json);
    finish('closed');
  });
}
