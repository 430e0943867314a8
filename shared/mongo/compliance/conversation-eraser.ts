import type { Connection } from 'mongoose';

import type { ComplianceSubject, DeletionReport, KnownRequest } from '../../contracts/compliance.ts';
import { hideName } from '../../domain/pseudonyms.ts';
import type { Pseudonyms } from '../../domain/pseudonyms.ts';
import { timeOfSeq } from '../../domain/request-times.ts';
import { batchLineModel, ENTITY_GONE } from '../batches/batch-lines.ts';
import type { BatchLineRow } from '../batches/batch-lines.ts';
import { batchModel } from '../batches/batch-repository.ts';
import { entityModel } from '../entities/entity-repository.ts';
import type { EntityRow } from '../entities/entity-repository.ts';
import { bytesOf, createEntityRoom, entityCountModel } from '../entities/entity-room.ts';
import { inSpace } from '../collection.ts';
import { answerModel } from '../requests/answer-repository.ts';
import { idempotencyModel } from '../requests/idempotency-repository.ts';
import { requestIntentModel } from '../requests/request-intents.ts';
import { keyModel } from '../tenants/key-repository.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';
import { webhookDeliveryModel, webhookEventModel } from '../webhooks/webhook-delivery-repository.ts';
import { webhookModel } from '../webhooks/webhook-repository.ts';
import { complianceJobModel } from './compliance-job-repository.ts';
import { deleteInPages, entitiesIn, ERASE_AT_ONCE, pagesOf } from './erase-pages.ts';

/** Each call can be repeated and returns what it found. */
export type ConversationEraser = ReturnType<typeof createConversationEraser>;

function filterOf(subject: ComplianceSubject) {
  const { entityId } = subject;
  return { ...inSpace(subject), ...(entityId === undefined ? {} : { entityId }) };
}

const LINE_FIELDS = { tenantId: 1, state: 1, entityId: 1, customId: 1 } as const;

/** Leaves out an entity's large texts. */
const ENTITY_FIELDS = {
  ...({ mode: 1, entityId: 1, subject: 1, grade: 1, name: 1, metadataJson: 1 } as const),
  ...({ deletedAt: 1, 'messages.requestId': 1 } as const),
};

type LineFilter = ReturnType<typeof filterOf> &
  ({ entityId: string } | { $or: ({ state: 'waiting' } | { fields: object } | { requestJson: object })[] });

/** The caller's name for the line may be the entity's. */
function withoutContent(
  { tenantId, state, entityId, customId }: Pick<BatchLineRow, keyof typeof LINE_FIELDS>,
  names: Pseudonyms,
) {
  const pseudonym = entityId === undefined ? undefined : names.of(tenantId, entityId);
  const isNamed = entityId !== undefined && pseudonym !== undefined && customId !== null;
  return {
    $set: {
      state: state === 'waiting' ? ('failed' as const) : state,
      error: ENTITY_GONE,
      customId: isNamed ? hideName(customId, entityId, pseudonym) : customId,
      ...(pseudonym === undefined ? {} : { entityId: pseudonym }),
    },
    $unset: {
      requestJson: 1 as const,
      fields: 1 as const,
      entries: 1 as const,
      failedAt: 1 as const,
      failedCode: 1 as const,
    },
  };
}

/** Keeps money, the audit log, and running exports and deletions of a closed tenant. */
async function eraseAccount(connection: Connection, tenantId: string): Promise<void> {
  const [own, id] = [{ tenantId }, { _id: 1 } as const];
  await Promise.all([
    keyModel(connection).deleteMany(own),
    webhookModel(connection).deleteMany(own),
    entityCountModel(connection).deleteMany(own),
    complianceJobModel(connection).deleteMany({ ...own, status: { $in: ['completed', 'failed'] } }),
    deleteInPages(webhookDeliveryModel(connection), own, id),
    deleteInPages(webhookEventModel(connection), own, id),
    deleteInPages(idempotencyModel(connection), own, id),
    deleteInPages(batchLineModel(connection), own, id),
    deleteInPages(batchModel(connection), own, id),
    tenantModel(connection).updateOne(
      { _id: tenantId },
      { $set: { name: 'Closed' }, $unset: { subject: 1, grade: 1, moderation: 1 } },
    ),
  ]);
}

async function eraseLines(
  batchLines: ReturnType<typeof batchLineModel>,
  filter: LineFilter,
  names: Pseudonyms,
): Promise<number> {
  for (let found = 0; ;) {
    const page = await batchLines.find(filter, LINE_FIELDS).limit(ERASE_AT_ONCE).lean();
    if (page.length === 0) return found;
    const writes = page.map((row) => ({ updateOne: { filter: { _id: row._id }, update: withoutContent(row, names) } }));
    await batchLines.bulkWrite(writes, { ordered: false });
    found += page.length;
  }
}

async function eraseBatches(
  batchLines: ReturnType<typeof batchLineModel>,
  subject: ComplianceSubject,
  names: Pseudonyms,
): Promise<number> {
  const { tenantId, entityId } = subject;
  const space = inSpace(subject);
  if (entityId !== undefined) return eraseLines(batchLines, { ...space, entityId }, names);
  let found = 0;
  for await (const one of entitiesIn(batchLines, subject))
    if (!names.isOne(tenantId, one)) found += await eraseLines(batchLines, { ...space, entityId: one }, names);
  const full = [{ state: 'waiting' as const }, { fields: { $exists: true } }, { requestJson: { $exists: true } }];
  return found + (await eraseLines(batchLines, { ...space, $or: full }, names));
}

async function giveRoomBack(
  room: ReturnType<typeof createEntityRoom>,
  tenantId: string,
  rows: readonly EntityRow[],
): Promise<void> {
  for (const mode of ['live', 'test'] as const) {
    const gone = rows.filter((row) => (row.mode ?? 'live') === mode);
    const bytes = gone.reduce((sum, row) => sum + bytesOf(row), 0);
    if (gone.length > 0) await room.note({ tenantId, mode }, { entities: -gone.length, bytes: -bytes });
  }
}

export function createConversationEraser(connection: Connection) {
  const entities = entityModel(connection);
  const room = createEntityRoom(connection);
  const answers = answerModel(connection);
  const intents = requestIntentModel(connection);
  const batchLines = batchLineModel(connection);

  return {
    account: (tenantId: string): Promise<void> => eraseAccount(connection, tenantId),

    /** With their history, and tombstones, which name the entity as well. */
    async entities(subject: ComplianceSubject): Promise<DeletionReport> {
      const found = { entity: 0, history: 0 };
      await deleteInPages(entities, filterOf(subject), ENTITY_FIELDS, async (page) => {
        for (const { messages } of page) found.history += messages.length;
        const there = page.filter(({ deletedAt }) => deletedAt === undefined);
        found.entity += there.length;
        await giveRoomBack(room, subject.tenantId, there);
      });
      return found;
    },

    /** Requests with a stored answer or a batch's line, erased or not; some at a time. */
    async *requests(subject: ComplianceSubject, names: Pseudonyms): AsyncIterable<KnownRequest[]> {
      for await (const page of pagesOf(answers, filterOf(subject), { idempotencyName: 1 }))
        yield page.map(({ _id, idempotencyName: name }) => ({ requestId: _id, name }));
      const { tenantId, entityId } = subject;
      const either = entityId === undefined ? {} : { entityId: { $in: [entityId, names.of(tenantId, entityId)] } };
      for await (const page of pagesOf(batchLines, { ...inSpace(subject), ...either }, { requestId: 1 }))
        yield page.map(({ requestId }) => ({ requestId }));
    },

    /**
     * Deletes stored answers, and intents, which Redis has as well, up to a place in the order of acceptance. A later
     * request is not deleted, and needs its intent in case Redis loses it.
     */
    async answers(subject: ComplianceSubject, upToSeq: number): Promise<DeletionReport> {
      const upTo = Math.floor(timeOfSeq(upToSeq));
      const [ofIntents, ofAnswers] = [
        { acceptedAt: { $lte: upTo } },
        { 'fields.acceptedAt': { $not: { $gt: `${upTo}` } } },
      ];
      // Erased requests have been ended and counted (workers/compliance/erase-requests.ts).
      await deleteInPages(intents, { ...filterOf(subject), ...ofIntents }, { _id: 1 });
      return { answers: await deleteInPages(answers, { ...filterOf(subject), ...ofAnswers }, { _id: 1 }) };
    },

    /** Lines that have not run will not run; results of the others are hidden. */
    async batches(subject: ComplianceSubject, names: Pseudonyms): Promise<DeletionReport> {
      return { batches: await eraseBatches(batchLines, subject, names) };
    },
  };
}
