import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import type { ComplianceKind, DeletionReport } from '../../../contracts/compliance.ts';
import type { ComplianceScope, ComplianceStatus, ExportedFile } from '../../../contracts/compliance.ts';
import type { ComplianceJob } from '../../../contracts/jobs.ts';
import type { ListQuery } from '../../../contracts/list-page.ts';
import type { Space } from '../../../contracts/space.ts';
import { collection, count, flag, number, options, required, text } from '../collection.ts';
import { listRows } from '../list-rows.ts';
import { inSpace } from '../spaces.ts';
import type { RowOfSpace } from '../spaces.ts';

/** An export or a deletion. Times are milliseconds since the epoch. */
export interface ComplianceJobRow extends RowOfSpace {
  _id: string;
  kind: ComplianceKind;
  scope: ComplianceScope;
  /** Of scope `entity`, until the entity is deleted. */
  entityId?: string;
  /** The entity's pseudonym: of every deletion of an entity, and of its exports once it is deleted. */
  entityHash?: string;
  status: ComplianceStatus;
  /** Rises whenever a worker takes it, or takes it away from one: only the latest may write. */
  claim: number;
  /** When it may be taken (again). */
  claimedUntil: number;
  createdAt: number;
  completedAt?: number;
  /** Present until its webhook event has been raised. */
  untold?: boolean;
  /** Why it failed, for the tenant. */
  error?: string;
  /** Of a completed export. */
  archive?: ExportArchive;
  /** The archive was deleted before its time, because an entity in it was. */
  archiveGone?: boolean;
  reason?: string;
  report?: DeletionReport;
}

export interface ExportArchive {
  bytes: number;
  /** Hex. */
  sha256: string;
  chunks: number;
  /** Which claim has written it. */
  claim: number;
  files: ExportedFile[];
  expiresAt: number;
}

const file = new Schema<ExportedFile>({ name: required, rows: count, bytes: count, sha256: required }, { _id: false });

const archive = new Schema<ExportArchive>(
  { bytes: count, sha256: required, chunks: count, claim: count, files: [file], expiresAt: count },
  { _id: false },
);

const jobSchema = new Schema<ComplianceJobRow>(
  {
    _id: required,
    tenantId: required,
    mode: text,
    kind: required,
    scope: required,
    entityId: text,
    entityHash: text,
    status: required,
    claim: count,
    claimedUntil: count,
    createdAt: count,
    completedAt: number,
    untold: flag,
    error: text,
    archive: { type: archive, required: false },
    archiveGone: flag,
    reason: text,
    report: { type: Schema.Types.Mixed },
  },
  options,
)
  .index({ tenantId: 1, kind: 1, createdAt: -1 })
  .index({ status: 1, claimedUntil: 1 })
  .index({ untold: 1 }, { partialFilterExpression: { untold: true } });

export const complianceJobModel = collection<ComplianceJobRow>('ComplianceJob', 'compliance_jobs', jobSchema);

/** A job in the hands of the worker that has taken it. */
export type ClaimedJob = Pick<ComplianceJobRow, '_id' | 'tenantId' | 'claim'>;

/** Exports and deletions. What a claimed job writes is refused, with false, once another worker has taken it. */
export interface ComplianceJobRepository {
  insert(row: ComplianceJobRow): Promise<void>;
  find(space: Space, kind: ComplianceKind, id: string): Promise<ComplianceJobRow | undefined>;
  /** One row more than the limit. */
  list(space: Space, kind: ComplianceKind, query: ListQuery): Promise<ComplianceJobRow[]>;
  /** How many have not ended. */
  countOpen(space: Space, kind: ComplianceKind): Promise<number>;
  /** Takes a job until `until`; whoever dies with it loses it then. Undefined: another has it, or it has ended. */
  claim(job: ComplianceJob, now: number, until: number): Promise<ComplianceJobRow | undefined>;
  /** Holds it until then, or gives it up until then. */
  renew(job: ClaimedJob, until: number): Promise<boolean>;
  completeExport(job: ClaimedJob, archive: ExportArchive, now: number): Promise<boolean>;
  /** From here on the deletion says nothing of its entity any more but the pseudonym. */
  completeDeletion(job: ClaimedJob, reason: string | undefined, now: number): Promise<boolean>;
  fail(job: ClaimedJob, error: string, now: number): Promise<boolean>;
  /** Adds to what a deletion has found so far. */
  addToReport(job: ClaimedJob, found: DeletionReport): Promise<void>;
  /** An ended job whose event has not been raised. */
  findUntold(job: ComplianceJob): Promise<ComplianceJobRow | undefined>;
  markTold(job: ClaimedJob): Promise<void>;
  /** Jobs of all tenants that nobody has in hand, and those whose event has not been raised. */
  due(now: number, limit: number): Promise<ComplianceJob[]>;
}

const OPEN = { $in: ['queued', 'in_progress'] as const };

export function createComplianceJobRepository(connection: Connection): ComplianceJobRepository {
  const jobs = complianceJobModel(connection);
  const held = ({ _id, tenantId, claim }: ClaimedJob) => ({ _id, tenantId, claim, status: 'in_progress' as const });

  async function change(job: ClaimedJob, update: object): Promise<boolean> {
    const { matchedCount } = await jobs.updateOne(held(job), update);
    return matchedCount === 1;
  }

  return {
    async insert(row) {
      await jobs.create(row);
    },

    async find(space, kind, id) {
      return (await jobs.findOne({ _id: id, ...inSpace(space), kind }).lean()) ?? undefined;
    },

    list: (space, kind, query) => listRows(jobs, { ...inSpace(space), kind }, query),

    countOpen: (space, kind) => jobs.countDocuments({ ...inSpace(space), kind, status: OPEN }),

    async claim({ tenantId, jobId }, now, until) {
      const taken = await jobs
        .findOneAndUpdate(
          { _id: jobId, tenantId, status: OPEN, claimedUntil: { $lte: now } },
          { $set: { status: 'in_progress', claimedUntil: until }, $inc: { claim: 1 } },
          { returnDocument: 'after' },
        )
        .lean();
      return taken ?? undefined;
    },

    renew: (job, until) => change(job, { $set: { claimedUntil: until } }),

    completeExport: (job, archive, now) =>
      change(job, { $set: { status: 'completed', completedAt: now, archive, untold: true } }),

    completeDeletion: (job, reason, now) =>
      change(job, {
        $set: { status: 'completed', completedAt: now, untold: true, ...(reason === undefined ? {} : { reason }) },
        $unset: { entityId: 1 },
      }),

    fail: (job, error, now) => change(job, { $set: { status: 'failed', completedAt: now, error } }),

    async addToReport(job, found) {
      const counts = Object.entries(found).filter(([, count]) => count > 0);
      if (counts.length === 0) return;
      await change(job, { $inc: Object.fromEntries(counts.map(([store, count]) => [`report.${store}`, count])) });
    },

    async findUntold({ tenantId, jobId }) {
      return (await jobs.findOne({ _id: jobId, tenantId, untold: true }).lean()) ?? undefined;
    },

    async markTold({ _id, tenantId }) {
      await jobs.updateOne({ _id, tenantId }, { $unset: { untold: 1 } });
    },

    async due(now, limit) {
      const names = { tenantId: 1 } as const;
      const [open, untold] = await Promise.all([
        jobs
          .find({ status: OPEN, claimedUntil: { $lte: now } }, names)
          .sort({ claimedUntil: 1 })
          .limit(limit)
          .lean(),
        jobs.find({ untold: true }, names).limit(limit).lean(),
      ]);
      return [...open, ...untold].map(({ _id, tenantId }) => ({ tenantId, jobId: _id }));
    },
  };
}
