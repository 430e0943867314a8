import { setTimeout as pause } from 'node:timers/promises';

import { EventSourceParserStream } from 'eventsource-parser/stream';
import { Agent, fetch } from 'undici';

import { errorCodeOf } from '../../shared/http/resolve-name.ts';
import type { Message } from './conversations.ts';

interface ChatCall {
  messages: readonly Message[];
  entityId: string;
  stream: boolean;
  /** Undefined: the tenant's default. */
  model: string | undefined;
}

interface ChatOutcome {
  requestId: string;
  /** The tier that answered; '' if none did. */
  model: string;
  text: string;
  finishReason: string;
  promptTokens: number;
  completionTokens: number;
  /** The service's code, or what happened to the connection. Undefined: a complete answer. */
  error: string | undefined;
  /** Times of the last try. */
  latencyMs: number;
  firstTokenMs: number | undefined;
  /** How often the call was refused with 429. */
  waits: number;
}

/** One request of a drive and its outcome. */
export interface TurnRecord extends ChatOutcome {
  conversation: string;
  entityId: string;
  /** From 1. */
  turn: number;
  stream: boolean;
  submitted: readonly Message[];
}

/** Longer than any window of the service's limits, except that of a day. */
const WAITING_MAX_MS = 15 * 60_000;
/** docs/spec.md#stream. */
const END_OF_STREAM = '[DONE]';

/** The parts of docs/spec.md#chat-completion, docs/spec.md#stream and docs/spec.md#error-object that are read here. */
interface WireAnswer {
  model?: string;
  choices?: { message?: { content: string }; delta?: { content?: string }; finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number };
  error?: { code: string };
}

/** The service has its own time limits, and a complete answer sends nothing until it is there. */
const PATIENT = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

const nothing = (): ChatOutcome => ({
  requestId: '',
  model: '',
  text: '',
  finishReason: '',
  promptTokens: 0,
  completionTokens: 0,
  error: undefined,
  latencyMs: 0,
  firstTokenMs: undefined,
  waits: 0,
});

/** Adds what a complete answer, or a chunk of one, says. */
function take(outcome: ChatOutcome, json: string): void {
  let answer: WireAnswer;
  try {
    // The service's own schema; if something else answers, fields are missing.
    answer = JSON.parse(json) as WireAnswer;
  } catch {
    return;
  }
  const choice = answer.choices?.[0];
  outcome.text += choice?.message?.content ?? choice?.delta?.content ?? '';
  outcome.model = answer.model ?? outcome.model;
  outcome.finishReason = choice?.finish_reason ?? outcome.finishReason;
  outcome.error ??= answer.error?.code;
  if (answer.usage === undefined) return;
  outcome.promptTokens = answer.usage.prompt_tokens;
  outcome.completionTokens = answer.usage.completion_tokens;
}

/** Calls the two chat routes like a polite caller: a 429 is tried again after the time in `Retry-After`. */
export function createChatClient(baseUrl: string, key: string) {
  /** Returns the seconds until the call may be sent again; undefined: this is its outcome. */
  async function post(call: ChatCall, signal: AbortSignal, outcome: ChatOutcome): Promise<number | undefined> {
    const { messages, entityId, model, stream } = call;
    const sentAt = performance.now();
    const response = await fetch(`${baseUrl}${stream ? '/chat/stream' : '/chat'}`, {
      dispatcher: PATIENT,
      signal,
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ messages, entity_id: entityId, model }),
    });
    const { status, headers, body } = response;
    outcome.requestId = headers.get('x-request-id') ?? '';
    if (status !== 200 || !stream || body === null) {
      take(outcome, await response.text());
      if (status !== 200 || outcome.finishReason === '') outcome.error ??= `status ${status} without a readable body`;
      return status === 429 ? Number(headers.get('retry-after') ?? 1) : undefined;
    }
    let last = '';
    const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    for await (const { data } of events) {
      last = data;
      take(outcome, data);
      if (outcome.text !== '') outcome.firstTokenMs ??= performance.now() - sentAt;
    }
    if (last !== END_OF_STREAM) outcome.error ??= 'the stream ended without [DONE]';
    return undefined;
  }

  return {
    /** Never rejects, except on `signal`. `onWait` is called for every 429 that is tried again. */
    async send(call: ChatCall, signal: AbortSignal, onWait: () => void): Promise<ChatOutcome> {
      const giveUpAt = performance.now() + WAITING_MAX_MS;
      for (let waits = 0; ; waits += 1) {
        const outcome = { ...nothing(), waits };
        const sentAt = performance.now();
        const waitSeconds = await post(call, signal, outcome).catch((error: unknown) => {
          signal.throwIfAborted();
          outcome.error ??= `connection failed (${errorCodeOf(error) || String(error)})`;
          return undefined;
        });
        outcome.latencyMs = performance.now() - sentAt;
        if (waitSeconds === undefined || performance.now() + waitSeconds * 1000 > giveUpAt) return outcome;
        onWait();
        await pause(waitSeconds * 1000, undefined, { signal });
      }
    },
  };
}
export type ChatClient = ReturnType<typeof createChatClient>;
