import type { KeptAnswer } from '../../shared/contracts/kept-answer.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { AnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import type { AnswerCache } from '../../shared/infra/redis/requests/stored-answers.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

/** Brings answers back that Redis has let go and MongoDB keeps: readers have one way to read, from Redis. */
export interface Recall {
  /** True: the request is in Redis again. */
  byId(principal: Pick<Principal, 'tenantId' | 'shard'>, requestId: string): Promise<boolean>;
  /** Before admission: a key that Redis no longer knows must not run its request a second time. */
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
  /** With MongoDB away what Redis knows has to do. */
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
