import type { IngressMetrics } from '../shared/infra/metrics/ingress-series.ts';
import { logBreakerChange } from '../shared/infra/logging/logger.ts';
import type { Logger } from '../shared/infra/logging/logger.ts';
import type { BreakerEvents } from '../shared/infra/redis/routing/breaker-store.ts';
import { createEventBus } from '../shared/lifecycle/event-bus.ts';
import type { EventBus } from '../shared/lifecycle/event-bus.ts';
import type { AdmissionEvents } from './admission/accept.ts';
import type { RelayEvents } from './relay/hub.ts';

/** What an ingress reports while it works; metrics and log listen. */
export interface IngressEvents extends AdmissionEvents, BreakerEvents, RelayEvents {}

/** The event bus of this process, with its metrics and its log already listening. */
export function createIngressEvents(
  metrics: Pick<IngressMetrics, 'admissions' | 'breakerChanges' | 'relayGapsFilled'>,
  log: Logger,
): EventBus<IngressEvents> {
  const events = createEventBus<IngressEvents>((name, error) => {
    log.error(`A listener of ${name} failed.`, { error });
  });
  events.on('admission.decided', (verdict) => {
    metrics.admissions.inc({ verdict });
  });
  events.on('relay.gap_filled', () => {
    metrics.relayGapsFilled.inc();
  });
  events.on('breaker.changed', (change) => {
    metrics.breakerChanges.inc({ provider: change.provider, from: change.from, to: change.to });
    logBreakerChange(log, change);
  });
  return events;
}
