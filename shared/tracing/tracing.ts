import type { FinishReason, Usage, ModerationTrace } from '../contracts/events.ts';
import type { QueueName } from '../contracts/jobs.ts';
import type { Provider } from '../domain/routing.ts';

/** `traceparent` (W3C Trace Context) names the span as the parent of what follows elsewhere. */
export interface OpenSpan<Result> {
  traceparent: string;
  /** Once; a span that is never ended is never exported. */
  end(result: Result): void;
}

/** `parent` is the traceparent that came with the request. */
interface OfRequest {
  requestId: string;
  parent: string | undefined;
}

interface ReceivedRequest extends Pick<OfRequest, 'requestId'> {
  /**
   * The caller's traceparent. The span is linked with it but begins a trace of its own: a caller writes into no other
   * trace, and decides nothing about sampling.
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

/** Spans take only what is named here: no conversation text, key or entity id (docs/spec.md#tracing). */
export interface Tracing {
  /** `end` takes the status of the answer, if there was one. */
  receive(request: ReceivedRequest): OpenSpan<number | undefined>;
  /** The time in line, once it is over. Returns the span's traceparent. */
  waited(request: WaitedRequest): string;
  /** Moderation has read the request ahead of any provider. Undefined: it stopped before a verdict. */
  moderate(request: OfRequest): OpenSpan<ModerationTrace | undefined>;
  callProvider(call: StartedProviderCall): OpenSpan<ProviderCallOutcome>;
}
