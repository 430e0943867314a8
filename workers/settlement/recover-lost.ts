import { LOST } from '../../shared/contracts/events.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { createAnswerRepository } from '../../shared/mongo/requests/answer-repository.ts';
import type { AnswerRepository } from '../../shared/mongo/requests/answer-repository.ts';
import { createRequestIntents } from '../../shared/mongo/requests/request-intents.ts';
import type { DueIntent, RequestIntents } from '../../shared/mongo/requests/request-intents.ts';
import { unlimited } from '../../shared/redis/time-limits.ts';
import type { AdmissionStore } from '../../shared/requests/admission-store.ts';
import { createRefund } from '../../shared/requests/refund.ts';
import { openRecovery } from '../../shared/requests/recovery.ts';
import type { ConcludeIntent, RecoverRequest, RecoveryParts } from '../../shared/requests/recovery.ts';
import type { RequestPresence } from '../../shared/requests/rollback.ts';

export interface RecoverLost {
  /** Waits for a round of the shard that is already running. */
  round(shard: number): Promise<void>;
  /**
   * Makes a request due for the next round if it has an intent, which stays until the request is back and has ended.
   * False: it has none, because nobody was promised that it survives or a round has concluded it. Whether the intent is
   * due does not tell: a failed round delays it, and this clock differs from Redis's. Safe to repeat.
   */
  makeDue(request: Pick<DueIntent, 'requestId' | 'tenantId'>): Promise<boolean>;
}

interface RecoverLostDeps {
  intents: RequestIntents;
  admissions: AdmissionStore;
  answers: AnswerRepository;
  presence: RequestPresence;
  recover: RecoverRequest;
  conclude: ConcludeIntent;
  refund: ReturnType<typeof createRefund>;
  clock: Clock;
  log: Logger;
}

const BATCH = 500;
/** Batches in one round; the next one follows soon. */
const BATCHES_MAX = 10;
/** A request is due again after this time if it is running or waiting, or could not be brought back. */
const LOOK_AGAIN_MS = 10_000;
/** A refund waits so long for its charge; then it is due again after REFUND_AGAIN_MS. */
const REFUND_MS = 30_000;
const REFUND_AGAIN_MS = 60_000;

async function recoverOne(
  { intents, recover, conclude, clock, log }: RecoverLostDeps,
  { tenantId, requestId }: DueIntent,
): Promise<void> {
  try {
    const intent = await intents.find({ tenantId, mode: 'any' }, requestId, clock.now());
    if (intent === undefined) return;
    const recovery = await recover(intent);
    if (recovery.kind === 'ended') await conclude(intent);
    else {
      await intents.postpone([requestId], clock.now() + (recovery.waitMs ?? LOOK_AGAIN_MS));
    }
  } catch (error) {
    log.error('A request that Redis has lost could not be brought back; a later round tries again.', {
      requestId,
      tenantId,
      error,
    });
    await intents.postpone([requestId], clock.now() + LOOK_AGAIN_MS);
  }
}

/**
 * Finds the ended requests whose intents have no more use: MongoDB has the answer, or need not have it. The answer of
 * one that was run again may be that of the run before.
 */
async function withoutMore({ answers }: RecoverLostDeps, ended: readonly DueIntent[]): Promise<ReadonlySet<string>> {
  const idsOf = (some: readonly DueIntent[]) => some.map(({ requestId }) => requestId);
  const stored = ended.filter(({ isRedisOnly, replays }) => !isRedisOnly && replays === 0);
  const answered = stored.length === 0 ? [] : await answers.among(idsOf(stored));
  return new Set([...idsOf(ended.filter(({ isRedisOnly }) => isRedisOnly)), ...answered]);
}

/** Takes a request back whose ingress may have ended. Its note stays until it has, and until its charge is given back. */
async function takeBack(
  { intents, admissions, refund, clock, log }: RecoverLostDeps,
  shard: number,
  { requestId, tenantId, takenBackKeyId: keyId, isGone }: DueIntent,
): Promise<void> {
  if (keyId === undefined) return;
  const isCharged =
    isGone === true || (await admissions.voidRefused(requestId, { shard, tenantId, keyId }, LOST)) === 'gone';
  if (!isCharged) return intents.forgetTakenBack(requestId);
  await intents.keepGone(requestId, clock.now() + REFUND_AGAIN_MS);
  void refund(requestId, { shard, tenantId })
    .then((isDone) => (isDone ? intents.forgetTakenBack(requestId) : undefined))
    .catch((error: unknown) => {
      log.warn('A refund stays noted; a later round looks again.', { requestId, tenantId, error });
    });
}

/** Brings back requests that Redis has lost, and concludes the intents of those that have ended. */
function createRecoverLost(deps: RecoverLostDeps): RecoverLost {
  const { intents, presence, clock } = deps;

  /** Returns how many due requests there were. */
  async function lookAfter(shard: number): Promise<number> {
    const rows = await intents.due(shard, clock.now(), BATCH);
    for (const row of rows) await takeBack(deps, shard, row);
    const due = rows.filter(({ takenBackKeyId }) => takenBackKeyId === undefined);
    if (due.length === 0) return rows.length;
    const ids = due.map(({ requestId }) => requestId);
    const found = await presence.look(shard, ids);
    const ended = due.filter((_, index) => found[index] === 'ended');
    const over = await withoutMore(deps, ended);
    await intents.forget([...over]);
    await intents.postpone(
      ids.filter((_, index) => found[index] === 'open'),
      clock.now() + LOOK_AGAIN_MS,
    );
    for (const [index, one] of due.entries())
      if (found[index] !== 'open' && !over.has(one.requestId)) await recoverOne(deps, one);
    return rows.length;
  }

  async function lookAfterAll(shard: number): Promise<void> {
    for (let batch = 0; batch < BATCHES_MAX; batch += 1) if ((await lookAfter(shard)) < BATCH) return;
  }

  const rounds = new Map<number, Promise<void>>();
  return {
    round(shard) {
      const running = rounds.get(shard) ?? lookAfterAll(shard).finally(() => rounds.delete(shard));
      rounds.set(shard, running);
      return running;
    },
    async makeDue({ tenantId, requestId }) {
      const intent = await intents.find({ tenantId, mode: 'any' }, requestId, clock.now());
      if (intent !== undefined) await intents.postpone([requestId], clock.now());
      return intent !== undefined;
    },
  };
}

export function openRecoverLost(parts: RecoveryParts): RecoverLost {
  const { mongo } = parts;
  return createRecoverLost({
    ...parts,
    ...openRecovery(parts, unlimited),
    refund: createRefund({ ...parts, giveUpAfterMs: REFUND_MS }),
    intents: createRequestIntents(mongo),
    answers: createAnswerRepository(mongo),
  });
}
