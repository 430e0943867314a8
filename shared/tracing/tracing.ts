import type { FinishReason, Usage, ModerationTrace } from '../contracts/events.ts';
import type { QueueName } from '../contracts/jobs.ts';
import type { Provider } from '../domain/routing.ts';

/** A span that has begun. `traceparent` (W3C Trace Context) names it as the parent of what follows elsewhere. */
export interface OpenSpan<Result> {
  traceparent: string;
  /** Once; a span that is never ended is never exported. */
  end(result: Result): void;
}

/** A request of the queue; `parent` is the traceparent that came with it. */
interface OfRequest {
  requestId: string;
  parent: string | undefined;
}

interface ReceivedRequest extends Pick<OfRequest, 'requestId'> {
  /**
   * The caller's traceparent. The span is linked with it and begins a trace of its own: a caller writes into no trace of
   * another one, and decides nothing about sampling.
   */
  caller: string | undefined;
  method: string;
  /** The route's pattern, never what a caller may choose. */
  route: string;
  scheme: string;
}

interface WaitedRequest extends OfRequest {
  queue: QueueName;
  /** Milliseconds since the epoch. */
  acceptedAt: number;
  claimedAt: number;
}

export interface StartedProviderCall extends OfRequest {
  provider: Provider;
  model: string;
  maxTokens: number;
  stream: boolean;
}

export type ProviderCallOutcome =
  | { finishReason: FinishReason; usage: Usage | undefined; model: string | undefined }
  /** In one word. */
  | { error: string };

/**
 * The spans of this service. None carries text of a conversation, a key or an entity's id: they take what is named here
 * and nothing else (docs/spec.md#tracing).
 */
export interface Tracing {
  /** A call of a chat route; `end` takes the status of its answer, if there was one. */
  receive(request: ReceivedRequest): OpenSpan<number | undefined>;
  /** The time in line, once it is over. Returns the span's traceparent. */
  waited(request: WaitedRequest): string;
  /** Moderation has read the request ahead of any provider. Undefined: it was stopped before there was a verdict. */
  moderate(request: OfRequest): OpenSpan<ModerationTrace | undefined>;
  callProvider(call: StartedProviderCall): OpenSpan<ProviderCallOutcome>;
}
