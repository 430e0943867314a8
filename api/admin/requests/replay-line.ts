import type { FailedLine, FailedLines } from '../../../shared/infra/mongo/batches/failed-lines.ts';
import type { PrincipalRepository } from '../../../shared/infra/mongo/tenants/principal-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { refusalOf } from './replay-checks.ts';
import { skip } from './replay-outcome.ts';
import type { ReplayOutcome } from './replay-outcome.ts';

export interface ReplayLineDeps {
  lines: Pick<FailedLines, 'keyOf' | 'reopen'>;
  principals: Pick<PrincipalRepository, 'findByKey'>;
  clock: Clock;
}

export type ReplayLine = (line: FailedLine) => Promise<ReplayOutcome>;

/**
 * Has a line that was given up wait again, as long as its batch runs: the dispatcher sends it behind all others, as a
 * request with an id of its own. It waits for credits and limits as every line does.
 */
export function createReplayLine({ lines, principals, clock }: ReplayLineDeps): ReplayLine {
  return async (line) => {
    const keyId = await lines.keyOf(line);
    if (keyId === undefined) return skip('not_replayable');
    const reason = refusalOf(await principals.findByKey(line.tenantId, keyId), clock.now());
    if (reason !== undefined) return skip(reason);
    return (await lines.reopen(line)) ? { kind: 'replayed' } : skip('not_replayable');
  };
}
