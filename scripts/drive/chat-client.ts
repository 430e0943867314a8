import { setTimeout as pause } from 'node:timers/promises';

import { createParser } from 'eventsource-parser';
import { Agent, request } from 'undici';
import type { Dispatcher } from 'undici';

import { errorCodeOf } from '../../shared/http/resolve-name.ts';
import type { Message } from './read-conversations.ts';

interface ChatCall {
  messages: readonly Message[];
  entityId: string;
  stream: boolean;
  /** Undefined: the tenant's default. */
  model: string | undefined;
}

interface Tokens {
  prompt: number;
  completion: number;
}

export interface ChatOutcome {
  requestId: string;
  /** The tier that answered; '' if none did. */
  model: string;
  text: string;
  finishReason: string;
  tokens: Tokens;
  /** The service's code, or what happened to the connection. Undefined: a complete answer. */
  error: string | undefined;
  /** Times of the last try. */
  latencyMs: number;
  firstTokenMs: number | undefined;
  /** How often the call was refused with 429. */
  waits: number;
}

export interface ChatClient {
  /** Never rejects, except on `signal`. `onWait` is called for every 429 that is tried again. */
  send(call: ChatCall, signal: AbortSignal, onWait: () => void): Promise<ChatOutcome>;
  close(): Promise<void>;
}

/** Longer than any window of the service's limits, except that of a day. */
const WAITING_MAX_MS = 15 * 60_000;

/** docs/spec.md#stream. */
const END_OF_STREAM = '[DONE]';

/** The parts of docs/spec.md#chat-completion, docs/spec.md#stream, docs/spec.md#error-object that are read here. */
interface WireAnswer {
  id?: string;
  model?: string;
  choices?: { message?: { content: string }; delta?: { content?: string }; finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number };
  error?: { code: string };
}

type Try = Omit<ChatOutcome, 'latencyMs' | 'waits'> & { status: number; retryAfterSeconds: number };

/** Calls the two chat routes like a polite caller: a 429 is tried again after the time in `Retry-After`. */
export function createChatClient(baseUrl: string, key: string): ChatClient {
  // The service has its own time limits, and a complete answer sends nothing until it is there.
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

  async function post(call: ChatCall, signal: AbortSignal): Promise<Try> {
    const { messages, entityId, model, stream } = call;
    const sentAt = performance.now();
    const { statusCode, headers, body } = await request(`${baseUrl}${stream ? '/chat/stream' : '/chat'}`, {
      dispatcher,
      signal,
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ messages, entity_id: entityId, ...(model === undefined ? {} : { model }) }),
    });
    const read =
      statusCode === 200 && stream
        ? await readStream(body, sentAt, signal)
        : readComplete(await body.text(), statusCode);
    return {
      ...read,
      status: statusCode,
      requestId: String(headers['x-request-id'] ?? ''),
      retryAfterSeconds: Number(headers['retry-after'] ?? 1),
    };
  }

  return {
    async send(call, signal, onWait) {
      const giveUpAt = performance.now() + WAITING_MAX_MS;
      for (let waits = 0; ; waits += 1) {
        const sentAt = performance.now();
        const { status, retryAfterSeconds, ...outcome } = await post(call, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          return { ...NOTHING, status: 0, retryAfterSeconds: 0, requestId: '', error: connectionFault(error) };
        });
        const latencyMs = performance.now() - sentAt;
        const waitMs = retryAfterSeconds * 1000;
        if (status !== 429 || performance.now() + waitMs > giveUpAt) return { ...outcome, latencyMs, waits };
        onWait();
        await pause(waitMs, undefined, { signal });
      }
    },
    close: () => dispatcher.close(),
  };
}

const NOTHING = {
  model: '',
  text: '',
  finishReason: '',
  tokens: { prompt: 0, completion: 0 },
  error: undefined,
  firstTokenMs: undefined,
};

type Read = Omit<Try, 'status' | 'requestId' | 'retryAfterSeconds'>;

function tokensOf({ usage }: WireAnswer): Tokens {
  return { prompt: usage?.prompt_tokens ?? 0, completion: usage?.completion_tokens ?? 0 };
}

function readComplete(json: string, status: number): Read {
  const answer = parseAnswer(json);
  const choice = answer?.choices?.[0];
  const text = choice?.message?.content;
  if (answer === undefined || status !== 200 || text === undefined) {
    return { ...NOTHING, error: answer?.error?.code ?? `status ${status} without a readable body` };
  }
  const { model = '' } = answer;
  return { ...NOTHING, model, text, finishReason: choice?.finish_reason ?? '', tokens: tokensOf(answer) };
}

async function readStream(body: Dispatcher.ResponseData['body'], sentAt: number, signal: AbortSignal): Promise<Read> {
  const read: Read = { ...NOTHING };
  let last = '';
  const parser = createParser({
    onEvent({ data }) {
      last = data;
      if (data === END_OF_STREAM) return;
      const chunk = parseAnswer(data);
      const choice = chunk?.choices?.[0];
      const text = choice?.delta?.content ?? '';
      if (text !== '') read.firstTokenMs ??= performance.now() - sentAt;
      read.text += text;
      read.model = chunk?.model ?? read.model;
      read.finishReason = choice?.finish_reason ?? read.finishReason;
      read.error ??= chunk?.error?.code;
      if (chunk?.usage !== undefined) read.tokens = tokensOf(chunk);
    },
  });
  body.setEncoding('utf8');
  try {
    for await (const text of body as AsyncIterable<string>) parser.feed(text);
  } catch (error) {
    signal.throwIfAborted();
    read.error ??= connectionFault(error);
  }
  if (last !== END_OF_STREAM) read.error ??= 'the stream ended without [DONE]';
  return read;
}

function parseAnswer(json: string): WireAnswer | undefined {
  try {
    // The service's own schema; if something else answers, fields are missing.
    return JSON.parse(json) as WireAnswer;
  } catch {
    return undefined;
  }
}

function connectionFault(error: unknown): string {
  const code = errorCodeOf(error);
  return `connection failed (${code === '' ? String(error) : code})`;
}
