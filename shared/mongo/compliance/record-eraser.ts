import type { Connection, Model } from 'mongoose';

import type { ComplianceSubject, DeletionReport } from '../../contracts/compliance.ts';
import type { Pseudonyms } from '../../domain/pseudonyms.ts';
import { BUCKET_MS, ROLL_UP_DIMENSIONS, rollUpIdOf, ALL_COUNTS } from '../../domain/roll-up.ts';
import type { BucketWidth, RollUpKey } from '../../domain/roll-up.ts';
import { ledgerModel } from '../accounts/ledger-repository.ts';
import { usageRollUpModel } from '../accounts/usage-repository.ts';
import type { UsageRollUpRow } from '../accounts/usage-repository.ts';
import { inSpace } from '../collection.ts';
import { actsOn, auditModel, ENTITY_ACTION } from '../tenants/audit-repository.ts';
import type { AuditRow } from '../tenants/audit-repository.ts';
import { entitiesIn, ERASE_AT_ONCE } from './erase-pages.ts';

/**
 * Replaces entities by pseudonyms where rows have to stay: money, sums and the audit log. Each call can be repeated and
 * returns the number of changed rows.
 */
export type RecordEraser = ReturnType<typeof createRecordEraser>;

// Object.keys forgets that the names are those of the record.
const WIDTHS = Object.keys(BUCKET_MS) as BucketWidth[];

function toMove(row: UsageRollUpRow, pseudonym: string) {
  const { tenantId, width, startMs, expiresAt } = row;
  const dimensions = Object.fromEntries(ROLL_UP_DIMENSIONS.map((name) => [name, row[name]])) as Pick<
    RollUpKey,
    (typeof ROLL_UP_DIMENSIONS)[number]
  >;
  const key = { tenantId, width, startMs, ...dimensions, entityId: pseudonym };
  return {
    updateOne: {
      filter: { _id: rollUpIdOf(key) },
      update: {
        $inc: Object.fromEntries(ALL_COUNTS.map((name) => [name, row[name] ?? 0])),
        $setOnInsert: { ...key, ...(expiresAt === undefined ? {} : { expiresAt }) },
      },
      upsert: true,
    },
  };
}

/** For a tenant, those without a pseudonym yet. */
async function* entitiesOf<Row>(
  names: Pseudonyms,
  rows: Model<Row>,
  subject: ComplianceSubject,
  more: object = {},
): AsyncGenerator<string> {
  const { tenantId, entityId } = subject;
  if (entityId !== undefined) yield entityId;
  else for await (const one of entitiesIn(rows, subject, more)) if (!names.isOne(tenantId, one)) yield one;
}

/** Undefined: the line names none of the entities. */
function withoutEntity(
  names: Pseudonyms,
  row: AuditRow,
  { tenantId, entityId }: ComplianceSubject,
): Partial<AuditRow> | undefined {
  const isMeant = (text: unknown): text is string =>
    typeof text === 'string' && (entityId === undefined ? !names.isOne(tenantId, text) : text === entityId);
  const target = ENTITY_ACTION.test(row.action) && isMeant(row.target) ? names.of(tenantId, row.target) : undefined;
  const named = row.details['entity_id'];
  const details = isMeant(named) ? { ...row.details, entity_id: names.of(tenantId, named) } : undefined;
  if (target === undefined && details === undefined) return undefined;
  return { ...(target === undefined ? {} : { target }), ...(details === undefined ? {} : { details }) };
}

async function hideInLedger(
  names: Pseudonyms,
  ledger: ReturnType<typeof ledgerModel>,
  subject: ComplianceSubject,
  entityId: string,
): Promise<number> {
  const space = inSpace(subject);
  const pseudonym = names.of(subject.tenantId, entityId);
  for (let changed = 0; ;) {
    const page = await ledger
      .find({ ...space, entityId }, { _id: 1 })
      .limit(ERASE_AT_ONCE)
      .lean();
    if (page.length === 0) return changed;
    const _id = { $in: page.map((row) => row._id) };
    await ledger.updateMany({ _id, ...space, entityId }, { $set: { entityId: pseudonym } });
    changed += page.length;
  }
}

/** A sum's id has the entity, so the sum moves: a settlement meanwhile makes the transaction run again. */
function moveSums(
  connection: Connection,
  usageRollUps: ReturnType<typeof usageRollUpModel>,
  names: Pseudonyms,
  subject: ComplianceSubject,
  entityId: string,
): Promise<number> {
  return connection.transaction(async (session) => {
    const page = await usageRollUps
      .find({ ...inSpace(subject), width: { $in: WIDTHS }, scope: 'entity', entityId }, null, { session })
      // Days go last: a tenant's deletion that begins again finds the entity by them.
      .sort({ width: -1 })
      .limit(ERASE_AT_ONCE)
      .lean();
    if (page.length === 0) return 0;
    const moves = page.map((row) => toMove(row, names.of(row.tenantId, entityId)));
    await usageRollUps.bulkWrite(moves, { session, ordered: false });
    await usageRollUps.deleteMany({ _id: { $in: page.map((row) => row._id) } }, { session });
    return page.length;
  });
}

export function createRecordEraser(connection: Connection, names: Pseudonyms) {
  const ledger = ledgerModel(connection);
  const usageRollUps = usageRollUpModel(connection);
  const audit = auditModel(connection);

  async function hideInUsage(subject: ComplianceSubject, entityId: string): Promise<number> {
    for (let changed = 0; ;) {
      const moved = await moveSums(connection, usageRollUps, names, subject, entityId);
      if (moved === 0) return changed;
      changed += moved;
    }
  }

  return {
    async ledger(subject: ComplianceSubject): Promise<DeletionReport> {
      let found = 0;
      for await (const entityId of entitiesOf(names, ledger, subject))
        found += await hideInLedger(names, ledger, subject, entityId);
      return { ledger_lines: found };
    },

    async usage(subject: ComplianceSubject): Promise<DeletionReport> {
      let found = 0;
      for await (const entityId of entitiesOf(names, usageRollUps, subject, { width: '1d' }))
        found += await hideInUsage(subject, entityId);
      return { usage_rollups: found };
    },

    /** A line of the audit log changes only here (docs/decisions/0014-retention-and-erasure.md). */
    async audit(subject: ComplianceSubject): Promise<DeletionReport> {
      const { tenantId, entityId } = subject;
      let found = 0;
      for await (const row of audit
        .find({ ...inSpace(subject), ...actsOn(entityId) })
        .lean()
        .cursor({ batchSize: ERASE_AT_ONCE })) {
        const change = withoutEntity(names, row, subject);
        if (change === undefined) continue;
        await audit.updateOne({ _id: row._id, tenantId }, { $set: change });
        found += 1;
      }
      return { audit_entries: found };
    },
  };
}
