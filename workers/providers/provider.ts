import type { AnswerSchema, ChatMessage, ChatRequest, Task, Role } from '../../shared/contracts/chat-request.ts';
import type { Delta, Usage } from '../../shared/contracts/events.ts';
import { textOf } from '../../shared/contracts/message-text.ts';
import type { HttpHead, ScheduleRead } from '../../shared/http/http-call.ts';
import type { Provider } from '../../shared/domain/routing.ts';

export interface ProviderCall {
  /** Sent as a header, so that the provider's log can be joined with ours. */
  requestId: string;
  /** Sent as a header (W3C Trace Context). */
  traceparent?: string;
  messages: readonly ChatMessage[];
  model: string;
  maxTokens: number;
  jsonMode: boolean;
  passed?: ChatRequest['passed'];
  /** The schema that the provider is to enforce. */
  schema?: AnswerSchema;
  /** Of `embed`. */
  task?: Extract<Task, { kind: 'embedding' }>;
  /**
   * Ask for a stream. If the caller waits for a complete answer, not streaming is cheaper: 2.1 against 2.8 ms of CPU.
   */
  stream: boolean;
  /** This call's own signal: aborting it ends the call. */
  signal: AbortSignal;
  /** Called with the head of the answer. */
  onHead?: ((head: HttpHead) => void) | undefined;
  /** Called for every part of a stream's body, text or not: it shows that the provider is not silent. */
  onBytes?: () => void;
  /** Join text that arrives together into fewer events. Only if nobody counts pieces as tokens. */
  joinsText?: boolean;
  /** The end of the body is waited for this long once nothing of the answer is missing; a second by default. */
  endWaitMs?: number;
  /** Called after each part of a stream's body: when to read the next part. Undefined: as soon as it arrives. */
  scheduleRead?: (() => ScheduleRead | undefined) | undefined;
}

/** A provider's count, all of its answer included; kinds of tokens if the provider tells them apart. */
export type ReportedUsage = Usage;

export interface ProviderEnd {
  finishReason: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  usage: ReportedUsage | undefined;
  /** The model as the provider names it. */
  model?: string | undefined;
  /** The provider's word for the end, if it is one that this service does not know and takes for `stop`. */
  unknownReason?: string | undefined;
}

/** Events of a provider, in order: text and other deltas, then one end. */
export type ProviderEvent =
  { kind: 'text'; text: string } | ({ kind: 'delta' } & Delta) | ({ kind: 'end' } & ProviderEnd);

/** Takes events while the answer arrives. What it throws ends the call. */
export type ProviderSink = (event: ProviderEvent) => void;

/** Whether a request offers tools that the model may call. */
export function offersTools({ tools, functions }: Readonly<Record<string, unknown>> = {}): boolean {
  return [tools, functions].some((list) => Array.isArray(list) && list.length > 0);
}

/** Speaks one provider's protocol. An answer without a finish reason is an error. */
export interface ProviderAdapter {
  /**
   * Makes a vector of each message. The answer is one text: how the caller wants them written, then each as base64 of
   * 32-bit floats, with a space in front. Absent: this protocol has no embeddings.
   */
  embed?(provider: Provider, call: ProviderCall, sink: ProviderSink): Promise<void>;
  /**
   * Resolves at the end of the body, which may come after the answer's own end. Rejects with a ProviderError, the
   * signal's reason or what `sink` threw.
   */
  generate(provider: Provider, call: ProviderCall, sink: ProviderSink): Promise<void>;
}

/** Makes a value once for each provider. The routing table keeps a provider's object while its settings are unchanged. */
export function perProvider<T>(make: (provider: Provider) => T): (provider: Provider) => T {
  const made = new WeakMap<Provider, { value: T }>();
  return (provider) => {
    const known = made.get(provider);
    if (known !== undefined) return known.value;
    const value = make(provider);
    made.set(provider, { value });
    return value;
  };
}

/**
 * `transient`: the same target may be tried again (network, 408, 409, 429, 5xx). `silent`: nothing came within the time
 * limit; likewise, but not while another target may answer. `refused`: the provider will not serve us at the moment
 * (401, 402, 403, and anything else that points to a wrong set-up), so the next target is called. `blocked`: likewise,
 * but by a firewall in front of the provider, which may object to this prompt alone. `full`: it serves other calls, so this
 * one waits for a place (workers/pipeline/capacity). `too_long`: the prompt exceeds
 * this model's window; another target's may be larger. `filtered`: the provider's content filter refuses the prompt.
 * `caller`: our request is wrong (400, 413, 422). After the last two no other target is called, and none of the last
 * three counts against the provider. Source: docs/spec.md#routing.
 */
export type ProviderFault =
  'transient' | 'silent' | 'refused' | 'blocked' | 'full' | 'too_long' | 'filtered' | 'caller';

/** The failure of one call; for the operator, never shown to a caller. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly fault: ProviderFault;
  readonly status: number | undefined;
  readonly retryAfterMs: number;

  constructor(
    fault: ProviderFault,
    message: string,
    details: { status?: number; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.fault = fault;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs ?? 0;
  }
}

/** docs/spec.md#routing. */
export function faultOfStatus(status: number): ProviderFault {
  if (status === 408 || status === 409 || status === 429 || status >= 500) return 'transient';
  return status === 400 || status === 413 || status === 422 ? 'caller' : 'refused';
}

/** Messages that an adapter may join into one text. */
export interface Row<Message extends ChatMessage = ChatMessage> {
  role: Role;
  messages: Message[];
}

/** Separates two messages that are joined. */
export const BETWEEN_JOINED = '\n\n';

export function textOfRow({ messages }: Row): string {
  return messages.map(textOf).join(BETWEEN_JOINED);
}

/**
 * The most that an adapter may join: all system messages form one row; of the others, without blank ones, consecutive
 * messages of one role form a row. Moderation reads the same rows, so no adapter can put together a text that
 * moderation has not read.
 */
export function joinRoles<Message extends ChatMessage>(
  messages: readonly Message[],
): { system: Row<Message>; turns: Row<Message>[] } {
  const system: Row<Message> = { role: 'system', messages: [] };
  const turns: Row<Message>[] = [];
  for (const message of messages) {
    if (message.content.trim() === '' && message.sent === undefined) continue;
    const role = message.role === 'tool' ? 'user' : message.role;
    const last = role === 'system' ? system : turns.at(-1);
    if (last?.role === role) last.messages.push(message);
    else turns.push({ role, messages: [message] });
  }
  return { system, turns };
}
