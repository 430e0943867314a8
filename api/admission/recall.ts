import type { KeptAnswer } from '../../shared/contracts/kept-answer.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { AnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import type { AnswerCache } from '../../shared/infra/redis/requests/stored-answers.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

/** Restores answers to Redis that only MongoDB still has, so that readers read from Redis alone. */
export interface Recall {
  /** True: the request is in Redis again. */
  byId(principal: Pick<Principal, 'tenantId' | 'shard'>, requestId: string): Promise<boolean>;
  /** Runs before admission: a key that Redis has forgotten must not run its request a second time. */
  byName(principal: Pick<Principal, 'tenantId' | 'shard'>, name: string): Promise<void>;
}

export interface RecallDeps {
  answers: Pick<AnswerRepository, 'find' | 'findNamed'>;
  cache: Pick<AnswerCache, 'isNamed' | 'restore'>;
  retentionMs: number;
  clock: Clock;
  log: Logger;
}

export function createRecall({ answers, cache, retentionMs, clock, log }: RecallDeps): Recall {
  /** While MongoDB is away, only answers in Redis are found. */
  async function orNothing(look: Promise<KeptAnswer | undefined>): Promise<KeptAnswer | undefined> {
    return look.catch((error: unknown) => {
      log.warn('Kept answers cannot be read.', { error });
      return undefined;
    });
  }

  async function restore(shard: number, answer: KeptAnswer, now: number): Promise<void> {
    const namedMs = Math.max(1, answer.expiresAt - now);
    await cache.restore(shard, answer, { ttlMs: retentionMs, namedMs });
  }

  return {
    async byId({ tenantId, shard }, requestId) {
      const now = clock.now();
      const answer = await orNothing(answers.find(tenantId, requestId, now));
      if (answer === undefined) return false;
      await restore(shard, answer, now);
      return true;
    },

    async byName({ tenantId, shard }, name) {
      if (await cache.isNamed(shard, name)) return;
      const now = clock.now();
      const answer = await orNothing(answers.findNamed(tenantId, name, now));
      if (answer !== undefined) await restore(shard, answer, now);
    },
  };
}
