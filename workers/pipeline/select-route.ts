import { orderTargets } from '../../shared/domain/routing/routing.ts';
import type { RoutingTable } from '../../shared/domain/routing/routing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Assembled, Routed, Stage } from './stage.ts';

export interface SelectRouteDeps {
  routing: { current(): RoutingTable };
  random: () => number;
  log: Logger;
}

/** The tier's targets in the order in which this request tries them. */
export function createSelectRoute({ routing, random, log }: SelectRouteDeps): Stage<Assembled, Routed> {
  return (run) => {
    const { tier, requestId } = run.envelope;
    const table = routing.current();
    const targets = orderTargets(table.tiers[tier]?.targets ?? [], random).flatMap((target) => {
      const provider = table.providers.get(target.provider);
      return provider === undefined ? [] : [{ target, provider }];
    });
    if (targets.length > 0) return Promise.resolve({ ...run, targets });
    log.warn('No provider is routed for the tier; an administrator sets it with PUT /admin/v1/tiers/{tier}.', {
      requestId,
      tier,
    });
    return Promise.reject(
      new ServiceError('model_unavailable', `The model \`${tier}\` has no provider at the moment; try again later.`, {
        retryAfterSeconds: 30,
      }),
    );
  };
}
