import { setTimeout as pause } from 'node:timers/promises';

import { toStoredAnswer } from '../../shared/admission/conclude-intent.ts';
import type { EndedAnswer } from '../../shared/contracts/stored-answer.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { AnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import type { AnswerCache } from '../../shared/infra/redis/requests/answer-cache.ts';
import type { Claimed } from './stage.ts';

export interface StoreAnswerDeps {
  answers: Pick<AnswerRepository, 'store'>;
  cache: Pick<AnswerCache, 'read' | 'shorten'>;
  /** How long Redis keeps an answer that MongoDB has. */
  retentionMs: number;
  log: Logger;
}

/** If Redis came back without the end of the request, the finish journal has replayed it by the last try. */
const TRIES_MAX = 5;
const AGAIN_MS = 500;

type EndedRequest = Pick<Claimed, 'ref' | 'envelope'> & { answer: Pick<Claimed['answer'], 'text'> };

/**
 * Stores the answer of an ended request in MongoDB if it must be kept longer than Redis keeps answers: for a day if the
 * call was asynchronous or had an Idempotency-Key, or for the tenant's retention. If MongoDB does not take it, Redis
 * keeps it for that long, and recovery stores it later if the request has an intent. Safe to run twice.
 */
export function createStoreAnswer({ answers, cache, retentionMs, log }: StoreAnswerDeps) {
  async function readEnd({ shard, requestId }: EndedRequest['ref']): Promise<EndedAnswer | undefined> {
    for (let tries = 1; ; tries += 1) {
      const ended = await cache.read(shard, requestId);
      if (ended !== undefined || tries === TRIES_MAX) return ended;
      await pause(AGAIN_MS);
    }
  }

  return async ({ ref, envelope, answer }: EndedRequest): Promise<void> => {
    const { shard, requestId } = ref;
    const { kept } = envelope;
    if (kept === undefined || kept.redisOnly === true) return;
    try {
      const ended = await readEnd(ref);
      if (ended === undefined) return;
      const stored = toStoredAnswer(ended, envelope, answer.text !== '');
      if (stored === undefined) return;
      await answers.store(stored);
      await cache.shorten(shard, ended, retentionMs);
    } catch (error) {
      log.warn('An answer could not be stored in MongoDB; Redis keeps it instead.', { requestId, error });
    }
  };
}
