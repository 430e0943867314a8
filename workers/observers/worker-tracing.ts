import type { ProviderKind } from '../../shared/domain/routing.ts';
import type { ProviderCallOutcome, Tracing } from '../../shared/tracing/tracing.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { FlaggedError } from '../moderation/moderator.ts';
import { failureReason } from '../pipeline/run-provider-call.ts';
import type { Assembled, Stage } from '../pipeline/stage.ts';
import type { WorkerEventBus } from '../pipeline/worker-events.ts';
import { ProviderError } from '../providers/provider.ts';
import type { ProviderAdapter } from '../providers/provider.ts';

/**
 * Wraps a worker's stages and adapters in spans; without tracing, none of this code runs. All spans are children of the
 * span that came with the request.
 */
export function traceQueue(events: WorkerEventBus, tracing: Tracing, clock: Clock): void {
  events.on('request.claimed', ({ envelope, delivery }) => {
    const { requestId, acceptedAt, traceparent: parent } = envelope;
    const waited = tracing.waited({ requestId, parent, queue: delivery.queue, acceptedAt, claimedAt: clock.now() });
    // Batch lines, and requests from an older ingress, come without a span: the wait starts their trace.
    envelope.traceparent ??= waited;
  });
}

export function traceModeration(moderate: Stage<Assembled, Assembled>, tracing: Tracing): Stage<Assembled, Assembled> {
  return async (run) => {
    const { requestId, traceparent: parent } = run.envelope;
    const span = tracing.moderate({ requestId, parent });
    try {
      return await moderate(run);
    } finally {
      span.end(run.answer.trace.moderation);
    }
  };
}

/** The HTTP status of a failure, as the semantic conventions require, or else the timeline's word for it. */
function outcomeOf(error: unknown): ProviderCallOutcome {
  if (error instanceof FlaggedError) return { finishReason: 'content_filter', usage: undefined, model: undefined };
  const status = error instanceof ProviderError ? error.status : undefined;
  return { error: status === undefined ? failureReason(error) : String(status) };
}

function traceAdapter({ generate, embed }: ProviderAdapter, tracing: Tracing): ProviderAdapter {
  const traced =
    (ask: ProviderAdapter['generate']): ProviderAdapter['generate'] =>
    async (provider, call, sink) => {
      const { requestId, traceparent: parent, model, maxTokens, stream } = call;
      const span = tracing.callProvider({ requestId, parent, provider, model, maxTokens, stream });
      let isOpen = true;
      function end(outcome: ProviderCallOutcome): void {
        if (isOpen) span.end(outcome);
        isOpen = false;
      }
      try {
        await ask(provider, { ...call, traceparent: span.traceparent }, (event) => {
          // The span ends with the answer; the rest of the body does not matter.
          if (event.kind === 'end') end({ finishReason: event.finishReason, usage: event.usage, model: event.model });
          sink(event);
        });
      } catch (error) {
        end(outcomeOf(error));
        throw error;
      }
    };
  return { generate: traced(generate), ...(embed === undefined ? {} : { embed: traced(embed) }) };
}

export function traceAdapters(
  adapters: Record<ProviderKind, ProviderAdapter>,
  tracing: Tracing,
): Record<ProviderKind, ProviderAdapter> {
  const traced = Object.entries(adapters).map(([kind, adapter]) => [kind, traceAdapter(adapter, tracing)] as const);
  // Object.fromEntries loses the names.
  return Object.fromEntries(traced) as Record<ProviderKind, ProviderAdapter>;
}
