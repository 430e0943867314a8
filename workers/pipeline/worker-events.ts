import type { OnEarlyEnd } from '../../shared/contracts/settlement.ts';
import type { BreakerState } from '../../shared/domain/breaker.ts';
import type { BreakerEvents } from '../../shared/redis/stores/breaker-store.ts';
import type { Emitter, EventBus } from '../../shared/lifecycle/event-bus.ts';
import type { ModerationEvents } from '../moderation/create-moderation.ts';
import type { Claimed, Outcome } from './stage.ts';
import type { ProviderFault } from '../providers/provider.ts';
import type { Backlog } from '../../shared/requests/outbox.ts';
import type { ReconcileEvents } from '../settlement/reconcile.ts';
import type { SettleEvents } from '../settlement/settle.ts';

/** Metrics, log and webhooks listen to these (worker-metrics.ts, compose.ts). No request depends on them. */
export interface WorkerEvents extends BreakerEvents, ModerationEvents, ReconcileEvents, SettleEvents {
  'request.claimed': [run: Claimed];
  /** A provider's first text has arrived; another provider may still be called. */
  'answer.first_text': [run: Claimed];
  'request.finished': [run: Claimed, outcome: Outcome];
  /** A request has ended without a run. */
  'request.ended_early': Parameters<OnEarlyEnd>;
  'moderation.flagged': [run: Claimed, side: 'input' | 'output', categories: readonly string[]];
  'provider.called': [target: { provider: string; model: string }, outcome: 'ok' | ProviderFault];
  /** An answer ended with a finish reason that is not known, in the provider's word; it was taken for `stop`. */
  'provider.odd_end': [target: { provider: string; model: string }, word: string];
  /** A breaker's state as this worker sees it, whichever worker has changed it. */
  'breaker.seen': [provider: string, state: BreakerState];
  'webhook.attempted': [outcome: 'succeeded' | 'failed'];
  'settlement.waiting': [shard: number, backlog: Backlog];
}

export type WorkerEmitter = Emitter<WorkerEvents>;
export type WorkerEventBus = EventBus<WorkerEvents>;
