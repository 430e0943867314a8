import { CHAT_LIMITS, VECTOR_BYTES_MAX } from '../../shared/contracts/chat-request.ts';
import type { ChatMessage, ChatRequest } from '../../shared/contracts/chat-request.ts';
import type { Delta, Increment } from '../../shared/contracts/events.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import { enforcesSchema } from '../../shared/domain/routing.ts';
import type { Provider, Target } from '../../shared/domain/routing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { HttpHead } from '../providers/http-call.ts';
import { FlaggedError } from '../moderation/moderator.ts';
import type { ModerationVerdict, OpenWindow } from '../moderation/moderator.ts';
import { openJsonReader } from '../moderation/text-units.ts';
import { OversizedError, ProviderError, readLimit } from '../providers/provider.ts';
import type {
  ProviderAdapter,
  ProviderCall,
  ProviderEnd,
  ProviderEvent,
  ProviderFault,
  ReportedUsage,
} from '../providers/provider.ts';
import type { Seat } from './seats.ts';
import { Stopped } from './stage.ts';

export interface ProviderCallTimes {
  /** Silence before the first text. Anything that the provider sends restarts this limit and the next. */
  firstTokenMs: number;
  silenceMs: number;
  totalMs: number;
}

/** The first token's limit grows by itself for each so many tokens of the prompt, up to LONGEST times. */
const TOKENS_OF_A_LIMIT = 3_000;
const LONGEST = 4;

/**
 * Scales a provider's limit for the first token to the prompt: small servers read some 150 tokens a second, so 15 s
 * become 35 s for 4,000 tokens, and one minute at most (docs/spec.md#complete-requests).
 */
export function firstTokenLimit(limitMs: number, promptTokens: number): number {
  return Math.round(limitMs * Math.min(LONGEST, 1 + promptTokens / TOKENS_OF_A_LIMIT));
}

export class ProviderTimeout extends ProviderError {
  constructor(what: string, ms: number) {
    super('silent', `The provider exceeded its time limit: no ${what} within ${ms} ms`);
  }
}

/** Names why a call ended, in one word for timelines and breakers: the provider's own text must not reach the caller. */
export function failureReason(error: unknown): string {
  if (error instanceof ProviderTimeout) return 'timeout';
  if (error instanceof ProviderError)
    return error.status === undefined ? 'connection_or_format' : `status_${error.status}`;
  return error instanceof Stopped ? error.reason : 'failed';
}

/** A failed call says this about its provider. `void`: nothing, because the call was stopped or was itself wrong. */
export type FailureClass = { kind: 'void' } | { kind: 'failed'; reason: string } | { kind: 'refused'; reason: string };

/** The provider refuses everything until somebody fixes our account (docs/spec.md#routing). */
const REFUSALS: ReadonlyMap<number | undefined, string> = new Map([
  [401, 'authentication'],
  [402, 'payment_required'],
  [403, 'forbidden'],
]);

const COUNTED: ReadonlySet<ProviderFault> = new Set(['transient', 'silent', 'blocked']);

/** Counts network failures, time limits, firewalls, 408, 409, 429, 5xx and broken answers, no caller's mistakes. */
export function classifyFailure(error: unknown): FailureClass {
  if (!(error instanceof ProviderError)) return { kind: 'void' };
  const refusal = error.fault === 'refused' ? REFUSALS.get(error.status) : undefined;
  if (refusal !== undefined) return { kind: 'refused', reason: refusal };
  // Other refusals, such as an unknown model, concern one target, not the whole provider.
  return COUNTED.has(error.fault) ? { kind: 'failed', reason: failureReason(error) } : { kind: 'void' };
}

type ProviderCallClock = ReturnType<typeof startProviderCallClock>;

/** Limits the first token, the silence behind it, and the total. */
export function startProviderCallClock(outer: AbortSignal, { firstTokenMs, silenceMs, totalMs }: ProviderCallTimes) {
  const controller = new AbortController();
  const abortAfter = (ms: number, what: string) =>
    setTimeout(() => {
      controller.abort(new ProviderTimeout(what, ms));
    }, ms);
  const onOuter = () => {
    controller.abort(outer.reason);
  };
  if (outer.aborted) onOuter();
  outer.addEventListener('abort', onOuter, { once: true });
  const total = abortAfter(totalMs, 'end of the answer');
  let silence = abortAfter(firstTokenMs, 'first token');
  return {
    /** The call's own signal: aborts at a time limit, or when `outer` does, with its reason. */
    signal: controller.signal,
    /** Something has arrived, text or not. */
    touch(): void {
      silence.refresh();
    },
    /** The first text has arrived. */
    begin(): void {
      clearTimeout(silence);
      silence = abortAfter(silenceMs, 'further byte');
    },
    /** The answer is complete: what follows, such as the last verdict, does not count as the provider's time. */
    rest(): void {
      clearTimeout(total);
      clearTimeout(silence);
    },
    /** Ends the call for another reason, even after `stop`. */
    abort(reason: Error): void {
      controller.abort(reason);
    },
    stop(): void {
      clearTimeout(total);
      clearTimeout(silence);
      outer.removeEventListener('abort', onOuter);
    },
  };
}

export interface ProviderCallInput {
  envelope: RequestEnvelope;
  target: Target;
  provider: Provider;
  messages: readonly ChatMessage[];
  /** Tokens that the target's window leaves for the answer; absent: as many as the request asks for. */
  maxTokens?: number;
  stream: boolean;
  /** Text that arrives together may be joined into one piece, because nobody counts pieces as tokens. */
  joinsText?: boolean;
  outer: AbortSignal;
  firstTokenMs: number;
  /** Silence behind the first text after which a provider counts as hung. */
  silenceMs: number;
  openWindow: OpenWindow;
  scheduleRead?: ProviderCall['scheduleRead'];
  /** The call's place at the provider, which learns from the answer. */
  seat?: Seat;
  /** Called for each part of the answer, before anything else is done with it. */
  onHeard?: (event: ProviderEvent) => void;
  /** Takes what is released; called in order. */
  onIncrement: (increment: Increment) => void;
}

export interface ProviderCallResult {
  finishReason: ProviderEnd['finishReason'];
  /** Undefined: the provider did not say. */
  usage: ReportedUsage | undefined;
  unknownReason?: string | undefined;
  /** Set when the answer was cut off by moderation. */
  flagged?: ModerationVerdict;
}

/**
 * UTF-16 units: 8 per token of the largest `max_output_tokens`, although models write about four. A batch line's answer
 * is one MongoDB document, which has room for nine bytes per unit, enough even if each is a piece of its own.
 */
const ANSWER_UNITS_MAX = CHAT_LIMITS.maxTokensMax * 64;
/** The line of another delta than text is stored as it is, in at most three bytes per unit. */
const LINE_UNITS_PER_UNIT = 3;

/** A delta on its way through the window; positions are in the text that the window reads. */
interface Passing {
  start: number;
  end: number;
  /** Undefined: a line break that stands between two parts. */
  delta: Delta | undefined;
}

function openReaders() {
  const readers = new Map<string, ReturnType<typeof openJsonReader>>();
  return (of: string, text: string): string => {
    const reader = readers.get(of) ?? openJsonReader();
    readers.set(of, reader);
    return reader(text);
  };
}

/**
 * Leads an answer through a window of moderation as one text: a delta's text stands where the delta comes, behind a
 * line break where another part begins. `show` gets text as the window releases it, and a delta once all before it and
 * its own text have passed.
 */
function createOrder(show: (increment: Increment) => void) {
  const passing: Passing[] = [];
  const readArguments = openReaders();
  let [added, passed] = [0, 0];
  let part = 'content';

  /** The line break in front of a part that begins. */
  function begin(next: string): string {
    if (next === part) return '';
    part = next;
    return added === 0 ? '' : '\n';
  }

  function release(text: string): void {
    let rest = text;
    const take = (until: number): string => {
      const taken = rest.slice(0, Math.max(0, until - passed));
      rest = rest.slice(taken.length);
      passed += taken.length;
      return taken;
    };
    for (let next = passing[0]; next !== undefined; next = passing[0]) {
      const before = take(next.start);
      if (before !== '') show(before);
      take(next.end);
      if (passed < next.end) return;
      passing.shift();
      if (next.delta !== undefined) show(next.delta);
    }
    passed += rest.length;
    if (rest !== '') show(rest);
  }

  return {
    release,
    add(event: Exclude<ProviderEvent, { kind: 'end' }>): string {
      const isText = event.kind === 'text';
      const between = begin(isText ? 'content' : event.part);
      const said = isText || !event.part.startsWith('tool_calls') ? event.text : readArguments(event.part, event.text);
      const start = added;
      added += between.length + said.length;
      if (!isText) passing.push({ start, end: added, delta: event });
      else if (between !== '') passing.push({ start, end: start + between.length, delta: undefined });
      // No text of its own brings it out.
      if (said === '' && passed === added) release('');
      return between + said;
    },
  };
}

/** Another target would send as many vectors or probabilities, so their number is the caller's. */
function toCallersSize(error: unknown, { task, passed }: ChatRequest): unknown {
  if (!(error instanceof OversizedError) || (task === undefined && passed?.['logprobs'] !== true)) return error;
  const [param, sentence] =
    task === undefined
      ? ['top_logprobs', 'The answer is too large; ask for fewer `top_logprobs`, or for a shorter answer.']
      : [
          'input',
          `The vectors have more than ${VECTOR_BYTES_MAX} bytes as base64; send fewer inputs, or ask for fewer \`dimensions\`.`,
        ];
  return new ServiceError('invalid_request', sentence, { param, cause: error });
}

/** A provider that had another kind when the tier was set. */
function embedderOf({ embed }: ProviderAdapter): NonNullable<ProviderAdapter['embed']> {
  if (embed !== undefined) return embed;
  throw new ProviderError('refused', 'The provider speaks a protocol without embeddings', { isRefusal: true });
}

function callOf(
  { envelope, target, provider, messages, maxTokens, stream, joinsText = false, scheduleRead, seat }: ProviderCallInput,
  clock: ProviderCallClock,
) {
  const { requestId, request, traceparent } = envelope;
  const isEnforced = enforcesSchema(target, provider);
  return {
    requestId,
    messages,
    model: target.model,
    maxTokens: maxTokens ?? request.maxTokens,
    jsonMode: request.jsonMode || (request.schema !== undefined && !isEnforced),
    stream,
    signal: clock.signal,
    onHead: (head: HttpHead) => {
      const [requests, tokens] = [readLimit(head, 'requests'), readLimit(head, 'tokens')];
      if (requests !== undefined || tokens !== undefined) seat?.recordLimits({ requests, tokens });
    },
    onBytes: clock.touch,
    joinsText,
    scheduleRead,
    ...(request.task?.kind === 'embedding' ? { task: request.task } : {}),
    ...(request.passed === undefined ? {} : { passed: request.passed }),
    ...(request.schema === undefined || !isEnforced ? {} : { schema: request.schema }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** Throws a ProviderError or the signal's reason. */
export async function runProviderCall(adapter: ProviderAdapter, input: ProviderCallInput): Promise<ProviderCallResult> {
  const { provider } = input;
  const clock = startProviderCallClock(input.outer, { ...input, totalMs: provider.timeoutMs });
  const state: { hasEnded: boolean; stopped?: Error } = { hasEnded: false };
  let hasShown = false;
  const order = createOrder((increment) => {
    hasShown = true;
    // The windows release whole characters, so a half that is left over stays one. It is replaced here, before the text
    // is counted, sent or stored anywhere: UTF-8 cannot represent it, and strict readers refuse the whole answer.
    input.onIncrement(typeof increment === 'string' ? increment.toWellFormed() : increment);
  });
  const window = input.openWindow({
    signal: clock.signal,
    release: order.release,
    stop(reason) {
      state.stopped = reason;
      // Moderation may stop the call while the call waits for the provider.
      if (!state.hasEnded) clock.abort(reason);
    },
  });
  const end = Promise.withResolvers<ProviderEnd>();
  const isChat = input.envelope.request.task === undefined;
  const unitsMax = isChat ? ANSWER_UNITS_MAX : VECTOR_BYTES_MAX;
  let units = 0;
  /** Called as each part of the answer is read. Anything it throws ends the call. */
  function onEvent(event: ProviderEvent): void {
    if (state.hasEnded) return;
    input.onHeard?.(event);
    if (event.kind === 'end') {
      state.hasEnded = true;
      clock.rest();
      end.resolve(event);
      return;
    }
    if (units === 0) {
      clock.begin();
      input.seat?.recordText();
    }
    units += event.kind === 'text' ? event.text.length : Math.ceil(event.line.length / LINE_UNITS_PER_UNIT);
    if (units > unitsMax) throw new OversizedError();
    window.push(order.add(event));
    if (state.stopped !== undefined) throw state.stopped;
  }
  async function call(): Promise<void> {
    try {
      await (isChat ? adapter.generate : embedderOf(adapter))(provider, callOf(input, clock), onEvent);
      if (!state.hasEnded) end.reject(new Error('An adapter ended without an end event'));
    } catch (error) {
      end.reject(toCallersSize(error, input.envelope.request));
    }
  }
  /**
   * Shows the text that moderation still holds back, where the caller has seen the beginning of a stream that fails.
   * Returns what the call ends with. Shows nothing of a stopped request, nor unchecked text once the time is over; only
   * shown text is counted.
   */
  async function showRest(error: unknown): Promise<unknown> {
    if (state.hasEnded || !hasShown || !input.envelope.stream || input.outer.aborted) return error;
    state.hasEnded = true;
    await window.end();
    return state.stopped instanceof FlaggedError ? state.stopped : error;
  }
  // Goes on behind the end of the answer to that of the body, for which the adapter waits as long as is good.
  void call();
  try {
    const { finishReason, usage, unknownReason } = await end.promise;
    await window.end();
    if (state.stopped !== undefined) throw state.stopped;
    return unknownReason === undefined ? { finishReason, usage } : { finishReason, usage, unknownReason };
  } catch (error) {
    const cause = state.stopped ?? (await showRest(error));
    if (!(cause instanceof FlaggedError)) throw cause;
    // The provider's count includes text that was held back. Only what was shown is charged, so usage is estimated.
    return { finishReason: 'content_filter', usage: undefined, flagged: cause.verdict };
  } finally {
    window.close();
    clock.stop();
  }
}
