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
 * Puts a line that was given up back into waiting, as long as its batch runs: the dispatcher sends it after all others,
 * as a request with a new id. Like every line, it waits for credits and limits.
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
