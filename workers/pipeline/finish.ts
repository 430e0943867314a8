import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { priceUsage } from '../../shared/domain/pricing/pricing.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { statusOf } from '../../shared/infra/redis/requests/request-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { FinishJournal } from '../settlement/finish-journal.ts';
import type { WorkerEmitter } from '../worker-events.ts';
import type { Claimed, Outcome } from './stage.ts';

export interface FinishDeps {
  journal: Pick<FinishJournal, 'finish'>;
  clock: Clock;
  events: WorkerEmitter;
  log: Logger;
}

/** The charge: none without text, and zero cost for test keys, whose entry is written all the same. */
function settlementOf(
  run: Claimed,
  { usage, finishReason }: Outcome,
  finishedAt: number,
): SettlementRecord | undefined {
  const { envelope, answer, rates } = run;
  if (answer.text === '') return undefined;
  const { requestId, tenantId, keyId, mode, tier, endpoint, acceptedAt, request } = envelope;
  return {
    requestId,
    tenantId,
    keyId,
    mode,
    tier,
    endpoint,
    acceptedAt,
    finishedAt,
    finishReason,
    ...(request.entityId === undefined ? {} : { entityId: request.entityId }),
    provider: answer.provider,
    model: answer.model,
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    estimated: usage.estimated ?? false,
    costMicro: mode === 'test' ? 0 : priceUsage(usage, rates),
  };
}

/**
 * Ends the request: terminal event, settlement record and hold release in one script. Safe to run twice: the script
 * refuses a lower fence and a second end, so a job that BullMQ hands out again ends and charges once. False: refused.
 */
export function createFinish({ journal, clock, events, log }: FinishDeps) {
  return async (run: Claimed, outcome: Outcome): Promise<boolean> => {
    const { answer, envelope, ref } = run;
    const settlement = settlementOf(run, outcome, clock.now());
    const { finishReason, usage, error } = outcome;
    const finished = await journal.finish(ref, answer.sentSeq, {
      status: statusOf(finishReason),
      deltas: answer.unsent,
      terminal: { finishReason, usage, trace: answer.trace, ...(error === undefined ? {} : { error }) },
      costMicro: settlement?.costMicro ?? 0,
      retentionMs: envelope.retentionMs,
      ...(settlement === undefined ? {} : { settlement }),
    });
    if (finished) events.emit('request.finished', run, outcome);
    else
      log.info('A finish was refused: another attempt owns the request or it has ended.', {
        requestId: ref.requestId,
        attempt: ref.fence,
      });
    return finished;
  };
}
