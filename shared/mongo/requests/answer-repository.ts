import type { Connection } from 'mongoose';

import { STORED_ANSWER_MS } from '../../contracts/jobs.ts';
import type { StoredAnswer } from '../../contracts/jobs.ts';
import type { SearchedSpace, Space } from '../../contracts/space.ts';
import { collection, inSpace, spaceFields } from '../collection.ts';
import type { RowOfSpace } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';

export interface AnswerRow extends RowOfSpace {
  _id: string;
  entityId?: string;
  idempotencyName?: string;
  fingerprint?: string;
  fields: StoredAnswer['fields'];
  entries: StoredAnswer['entries'];
  expiresAt: Date;
}

export const answerModel = collection<AnswerRow>('answers', [
  [{ tenantId: 1, idempotencyName: 1 }],
  [{ tenantId: 1, entityId: 1 }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** Keeps answers longer than Redis does. Every look-up takes the space first. */
export type AnswerRepository = ReturnType<typeof createAnswerRepository>;

function toAnswer(row: AnswerRow): StoredAnswer {
  const { _id: requestId, tenantId, mode = 'live', entityId, idempotencyName: name } = row;
  const { fingerprint, fields, entries, expiresAt } = row;
  return {
    requestId,
    tenantId,
    mode,
    fields,
    entries: entries.map(({ lastSeq, payload }) => ({ lastSeq, payload })),
    expiresAt: expiresAt.getTime(),
    ...(entityId === undefined ? {} : { entityId }),
    ...(name === undefined || fingerprint === undefined ? {} : { idempotency: { name, fingerprint } }),
  };
}

async function storeAnswer(
  answers: ReturnType<typeof answerModel>,
  { requestId, tenantId, mode, entityId, idempotency, fields, entries, expiresAt }: StoredAnswer,
): Promise<void> {
  const row = {
    ...spaceFields({ tenantId, mode }),
    fields,
    entries,
    expiresAt: new Date(expiresAt),
    ...(entityId === undefined ? {} : { entityId }),
    ...(idempotency === undefined ? {} : { idempotencyName: idempotency.name, fingerprint: idempotency.fingerprint }),
  };
  const finishedAt = fields['finishedAt'] ?? '';
  // Milliseconds as text, here and in findNamed: all have 13 digits.
  const isOlder = finishedAt === '' ? {} : { 'fields.finishedAt': { $not: { $gt: finishedAt } } };
  const filter = { _id: requestId, ...isOlder };
  try {
    await answers.updateOne(filter, { $set: row }, { upsert: true });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    // A later end is stored, or another process has just stored one.
    await answers.updateOne(filter, { $set: row });
  }
}

export function createAnswerRepository(connection: Connection) {
  const answers = answerModel(connection);
  /** MongoDB deletes expired rows up to a minute late. */
  const alive = (now: number) => ({ expiresAt: { $gt: new Date(now) } });
  return {
    /** Leaves the answer of a later run of the request. Safe to repeat. */
    store: (answer: StoredAnswer): Promise<void> => storeAnswer(answers, answer),

    /** Undefined: unknown or expired. `now`: milliseconds since the epoch. */
    async find(space: SearchedSpace, requestId: string, now: number): Promise<StoredAnswer | undefined> {
      const row = await answers.findOne({ ...inSpace(space), _id: requestId, ...alive(now) }).lean();
      return row === null ? undefined : toAnswer(row);
    },

    /** Finds those of the requests with an answer here, even if its time is over. */
    async among(requestIds: readonly string[]): Promise<ReadonlySet<string>> {
      const rows = await answers.find({ _id: { $in: [...requestIds] } }, { _id: 1 }).lean();
      return new Set(rows.map(({ _id }) => _id));
    },

    /** Deletes the answer of `finishedAt` (ms since the epoch) for a request that is run again. Safe to repeat. */
    async remove(space: Space, requestId: string, finishedAt: number): Promise<void> {
      await answers.deleteOne({ ...inSpace(space), _id: requestId, 'fields.finishedAt': String(finishedAt) });
    },

    /** Like `find`, while the Idempotency-Key lives. `name`: the hash that stands for the key. */
    async findNamed(space: Space, name: string, now: number): Promise<StoredAnswer | undefined> {
      const isNamed = { idempotencyName: name, 'fields.acceptedAt': { $gt: String(now - STORED_ANSWER_MS) } };
      const row = await answers.findOne({ ...inSpace(space), ...isNamed, ...alive(now) }).lean();
      return row === null ? undefined : toAnswer(row);
    },
  };
}
