import type { KeptAnswer } from '../../../contracts/kept-answer.ts';
import type { Models } from '../models.ts';
import type { AnswerRow } from '../rows.ts';

/** Answers that are kept longer than Redis keeps them. Every call takes the tenant first. */
export interface AnswerRepository {
  /** Safe to repeat. */
  keep(answer: KeptAnswer): Promise<void>;
  /** Undefined: unknown, or its time is over. */
  find(tenantId: string, requestId: string, now: number): Promise<KeptAnswer | undefined>;
  /** The one under an Idempotency-Key. */
  findNamed(tenantId: string, name: string, now: number): Promise<KeptAnswer | undefined>;
}

function toAnswer(row: AnswerRow): KeptAnswer {
  const { _id: requestId, tenantId, entityId, idempotencyName: name, fingerprint, fields, entries, expiresAt } = row;
  return {
    ...{ requestId, tenantId, fields },
    entries: entries.map(({ lastSeq, payload }) => ({ lastSeq, payload })),
    expiresAt: expiresAt.getTime(),
    ...(entityId === undefined ? {} : { entityId }),
    ...(name === undefined || fingerprint === undefined ? {} : { idempotency: { name, fingerprint } }),
  };
}

export function createAnswerRepository({ answers }: Pick<Models, 'answers'>): AnswerRepository {
  /** MongoDB deletes what has expired up to a minute late. */
  const alive = (now: number) => ({ expiresAt: { $gt: new Date(now) } });
  return {
    async keep({ requestId, tenantId, entityId, idempotency, fields, entries, expiresAt }) {
      const row = {
        ...{ tenantId, fields, entries },
        expiresAt: new Date(expiresAt),
        ...(entityId === undefined ? {} : { entityId }),
        ...(idempotency === undefined
          ? {}
          : { idempotencyName: idempotency.name, fingerprint: idempotency.fingerprint }),
      };
      await answers.updateOne({ _id: requestId }, { $set: row }, { upsert: true });
    },

    async find(tenantId, requestId, now) {
      const row = await answers.findOne({ tenantId, _id: requestId, ...alive(now) }).lean();
      return row === null ? undefined : toAnswer(row);
    },

    async findNamed(tenantId, name, now) {
      const row = await answers.findOne({ tenantId, idempotencyName: name, ...alive(now) }).lean();
      return row === null ? undefined : toAnswer(row);
    },
  };
}
