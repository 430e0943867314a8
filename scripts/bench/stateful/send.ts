import { createParser } from 'eventsource-parser';
import { Agent, request } from 'undici';
import type { Dispatcher } from 'undici';

import type { HttpAsk } from './system.ts';

export interface Reply {
  /** 0 if no answer came. */
  status: number;
  requestId: string;
  text: string;
  /** Whether the answer came to its end: a stream with `[DONE]`, a complete answer with its text. */
  isWhole: boolean;
  /** The id of the last whole event. */
  lastEventId: string;
  retryAfterSeconds: number | undefined;
  /** Prompt plus completion, according to the answer. */
  tokens: number | undefined;
  /** Times of performance.now(). */
  sentAt: number;
  headAt: number;
  firstTextAt: number | undefined;
  endedAt: number;
}

export interface SendOptions {
  requestIdHeader: string;
  /** The client leaves after this many bytes of the body. */
  leaveAfterBytes?: number;
  timeoutMs?: number;
}

interface WireAnswer {
  choices?: { message?: { content?: string | null }; delta?: { content?: string | null } }[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
}

const TIMEOUT_MS = 120_000;
const END_OF_STREAM = '[DONE]';

/** Each request gets its own connection, so that a killed server is not called on an old one. */
const dispatcher = new Agent({ connections: null, pipelining: 0, headersTimeout: 0, bodyTimeout: 0 });

/** Sends one request and reads its answer; streams are read as they come. Never rejects. */
export async function send(baseUrl: string, ask: HttpAsk, options: SendOptions): Promise<Reply> {
  const now = performance.now();
  const reply: Reply = {
    status: 0,
    requestId: '',
    text: '',
    isWhole: false,
    lastEventId: '',
    retryAfterSeconds: undefined,
    tokens: undefined,
    sentAt: now,
    headAt: now,
    firstTextAt: undefined,
    endedAt: now,
  };
  try {
    const response = await request(`${baseUrl}${ask.path}`, {
      dispatcher,
      reset: true,
      method: ask.body === undefined ? 'GET' : 'POST',
      headers: ask.headers,
      ...(ask.body === undefined ? {} : { body: ask.body }),
      signal: AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS),
    });
    readHead(reply, response, options.requestIdHeader);
    const isStream = String(response.headers['content-type']).startsWith('text/event-stream');
    if (isStream) await readStream(reply, response.body, options.leaveAfterBytes ?? Infinity);
    else readComplete(reply, await response.body.text());
  } catch {
    // What arrived is in the reply; the rest is missing from it.
    reply.isWhole = false;
  }
  reply.endedAt = performance.now();
  return reply;
}

function readHead(reply: Reply, { statusCode, headers }: Dispatcher.ResponseData, requestIdHeader: string): void {
  const retryAfter = headers['retry-after'];
  reply.headAt = performance.now();
  reply.status = statusCode;
  reply.requestId = String(headers[requestIdHeader] ?? '');
  if (retryAfter !== undefined) reply.retryAfterSeconds = Number(retryAfter);
}

async function readStream(reply: Reply, body: Dispatcher.ResponseData['body'], most: number): Promise<void> {
  const parser = createParser({
    onEvent({ id, data }) {
      if (data === END_OF_STREAM) reply.isWhole = true;
      else readText(reply, data);
      reply.lastEventId = id ?? reply.lastEventId;
    },
  });
  const decoder = new TextDecoder();
  let left = most;
  for await (const bytes of body as AsyncIterable<Buffer>) {
    parser.feed(decoder.decode(bytes.subarray(0, left), { stream: true }));
    left -= bytes.length;
    if (left > 0) continue;
    body.destroy();
    return;
  }
}

function readComplete(reply: Reply, json: string): void {
  readText(reply, json);
  reply.isWhole = reply.status === 200 && reply.text !== '';
}

/** Reads a chunk or a complete answer. Throws if it is not JSON, and the answer then is not whole. */
function readText(reply: Reply, json: string): void {
  // OpenAI's protocol; if a server sends something else, its text is missing here.
  const { choices, usage } = JSON.parse(json) as WireAnswer;
  const text = choices?.[0]?.message?.content ?? choices?.[0]?.delta?.content ?? '';
  if (text !== '') reply.firstTextAt ??= performance.now();
  reply.text += text;
  if (usage !== undefined && usage !== null) reply.tokens = usage.prompt_tokens + usage.completion_tokens;
}
