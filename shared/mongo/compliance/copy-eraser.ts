import type { Connection, QueryFilter } from 'mongoose';

import type { ComplianceSubject, DeletionReport } from '../../contracts/compliance.ts';
import { hideName } from '../../domain/pseudonyms.ts';
import type { Pseudonyms } from '../../domain/pseudonyms.ts';
import { inSpace } from '../collection.ts';
import { idempotencyModel } from '../requests/idempotency-repository.ts';
import type { IdempotencyRow } from '../requests/idempotency-repository.ts';
import { refusalCountModel, requestLogModel } from '../requests/request-log.ts';
import { webhookDeliveryModel, webhookEventModel } from '../webhooks/webhook-delivery-repository.ts';
import { complianceJobModel } from './compliance-job-repository.ts';
import type { ComplianceJobRow } from './compliance-job-repository.ts';
import { deleteInPages, ERASE_AT_ONCE, pagesOf } from './erase-pages.ts';
import { exportChunkModel } from './export-archive-repository.ts';

/** Erases answers that are given again, events and exports. Safe to repeat. */
export type CopyEraser = ReturnType<typeof createCopyEraser>;

/** For a whole tenant, only what is about conversations goes: a key or a checkout must not be made twice. */
const ABOUT_CONVERSATIONS = /\/(batches|compliance\/exports)\//;
const CHAT_EVENTS = /^(chat|batch|entity|moderation)\./;
const EXPORT_ERROR = 'The entity was deleted before the export was complete.';
/** The tenant's running export starts again this long after, when the deletion has got on. */
const AGAIN_AFTER_MS = 10_000;

type ExportFilter = ReturnType<typeof inSpace> & Pick<ComplianceJobRow, 'kind' | 'scope'> & { entityHash?: string };

/** A deletion's own answer is given again without the entity. */
function ownAnswer({ bodyJson = 'null' }: IdempotencyRow, hide: (text: string) => string): string | undefined {
  const body: unknown = JSON.parse(bodyJson);
  if (typeof body !== 'object' || body === null) return undefined;
  if (!('object' in body) || body.object !== 'compliance.deletion') return undefined;
  const reason = 'reason' in body && typeof body.reason === 'string' ? { reason: hide(body.reason) } : {};
  return JSON.stringify({ ...body, entity_id: null, ...reason });
}

/** An ended export loses its archive, another one what it had written. */
async function removeArchive(
  jobs: ReturnType<typeof complianceJobModel>,
  exportChunks: ReturnType<typeof exportChunkModel>,
  { _id, tenantId, status, archive, archiveGone, claim }: ComplianceJobRow,
): Promise<boolean> {
  const hasArchive = archive !== undefined && archiveGone !== true;
  if (hasArchive) await jobs.updateOne({ _id, tenantId }, { $set: { archiveGone: true } });
  const hasEnded = status === 'completed' || status === 'failed';
  const chunks = { tenantId, exportId: _id, ...(hasEnded ? {} : { claim: { $lt: claim } }) };
  const { deletedCount } = await exportChunks.deleteMany(chunks);
  return hasArchive || deletedCount > 0;
}

/** The entity's id finds no rows afterwards. */
async function hideNames(
  jobs: ReturnType<typeof complianceJobModel>,
  filter: QueryFilter<ComplianceJobRow>,
  names: Pseudonyms,
): Promise<void> {
  for (;;) {
    const page = await jobs.find(filter, { tenantId: 1, entityId: 1, reason: 1 }).limit(ERASE_AT_ONCE).lean();
    if (page.length === 0) return;
    for (const { _id, tenantId, entityId = '', reason } of page) {
      const entityHash = names.of(tenantId, entityId);
      const hidden = reason === undefined ? {} : { reason: hideName(reason, entityId, entityHash) };
      await jobs.updateOne({ _id }, { $set: { entityHash, ...hidden }, $unset: { entityId: 1 } });
    }
  }
}

/** Erases archives that may have the subject. An open export of the entity fails; one of the tenant starts again. */
function createExportEraser(connection: Connection) {
  const jobs = complianceJobModel(connection);
  const exportChunks = exportChunkModel(connection);

  async function removeArchives(filter: ExportFilter): Promise<number> {
    let removed = 0;
    for await (const page of pagesOf(jobs, filter))
      for (const row of page) if (await removeArchive(jobs, exportChunks, row)) removed += 1;
    return removed;
  }

  return async (subject: ComplianceSubject, names: Pseudonyms, now: number): Promise<DeletionReport> => {
    const { tenantId, entityId } = subject;
    const space = inSpace(subject);
    const ofTenant = { ...space, kind: 'export', scope: 'tenant' } as const;
    const ofEntities = { ...space, kind: 'export', scope: 'entity' } as const;
    const ofEntity = { ...ofEntities, ...(entityId === undefined ? {} : { entityId }) };
    await jobs.updateMany(
      { ...ofTenant, status: 'in_progress' },
      { $set: { status: 'queued', claimedUntil: now + AGAIN_AFTER_MS }, $unset: { turn: 1 }, $inc: { claim: 1 } },
    );
    await jobs.updateMany(
      { ...ofEntity, status: { $in: ['queued', 'in_progress'] } },
      {
        $set: { status: 'failed', error: EXPORT_ERROR, completedAt: now },
        $unset: { turn: 1, sole: 1 },
        $inc: { claim: 1 },
      },
    );
    const named = { entityId: entityId ?? { $exists: true } };
    await hideNames(jobs, { ...ofEntity, ...named }, names);
    // A failed deletion needs its entity's id no more.
    await hideNames(jobs, { ...space, kind: 'deletion', status: 'failed', ...named }, names);
    const erased = entityId === undefined ? ofEntities : { ...ofEntities, entityHash: names.of(tenantId, entityId) };
    return { exports: (await removeArchives(ofTenant)) + (await removeArchives(erased)) };
  };
}

/** Deletes the rows of a tenant's ended requests; no row names an entity. */
function createRequestLogEraser(connection: Connection) {
  return async (subject: ComplianceSubject): Promise<DeletionReport> => {
    if (subject.entityId !== undefined) return {};
    const space = inSpace(subject);
    await deleteInPages(refusalCountModel(connection), space, { _id: 1 });
    return { requests: await deleteInPages(requestLogModel(connection), space, { _id: 1 }) };
  };
}

export function createCopyEraser(connection: Connection) {
  const idempotency = idempotencyModel(connection);
  const webhookEvents = webhookEventModel(connection);
  const webhookDeliveries = webhookDeliveryModel(connection);

  return {
    /** `hide` removes the entity's name from a text. */
    async idempotency(subject: ComplianceSubject, hide: (text: string) => string): Promise<DeletionReport> {
      const { tenantId, entityId } = subject;
      const about =
        entityId === undefined
          ? { $or: [{ entityId: { $exists: true } }, { location: ABOUT_CONVERSATIONS }] }
          : { entityId };
      const filter = { ...inSpace(subject), ...about };
      let rewritten = 0;
      const rewrite = async (page: IdempotencyRow[]) => {
        for (const row of page) {
          const bodyJson = ownAnswer(row, hide);
          if (bodyJson === undefined) continue;
          await idempotency.updateOne({ _id: row._id, tenantId }, { $set: { bodyJson }, $unset: { entityId: 1 } });
          rewritten += 1;
        }
      };
      const deleted = await deleteInPages(idempotency, filter, { bodyJson: 1 }, rewrite);
      return { idempotency_records: deleted + rewritten };
    },

    async webhooks(subject: ComplianceSubject): Promise<DeletionReport> {
      const { tenantId, entityId } = subject;
      const about =
        entityId === undefined ? { $or: [{ type: CHAT_EVENTS }, { entityId: { $exists: true } }] } : { entityId };
      const deleted = await deleteInPages(
        webhookEvents,
        { ...inSpace(subject), ...about },
        { _id: 1 },
        async (page) => {
          await webhookDeliveries.deleteMany({ tenantId, eventId: { $in: page.map(({ _id }) => _id) } });
        },
      );
      return { webhook_payloads: deleted };
    },

    exports: createExportEraser(connection),
    requestLog: createRequestLogEraser(connection),
  };
}
