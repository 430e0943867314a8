import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import type {
  ComplianceKind,
  DeletionReport,
  ComplianceScope,
  ComplianceStatus,
  ExportedFile,
} from '../../../contracts/compliance.ts';
import type { ComplianceJob } from '../../../contracts/jobs.ts';
import type { ListQuery } from '../../../contracts/list-page.ts';
import type { Space } from '../../../contracts/space.ts';
import { collection, count, flag, number, options, required, text } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
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
  /** While it is open: one of the places that a tenant and mode have for its kind and scope. */
  sole?: string;
  /** While a worker has it in hand: its tenant and kind, of which one runs at a time. */
  turn?: string;
  completedAt?: number;
  /** Present until its webhook event has been published. Stored rows of every version have this name. */
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
    sole: text,
    turn: text,
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
  .index({ sole: 1 }, { unique: true, partialFilterExpression: { sole: { $exists: true } } })
  .index({ turn: 1 }, { unique: true, partialFilterExpression: { turn: { $exists: true } } })
  .index({ untold: 1 }, { partialFilterExpression: { untold: true } });

export const complianceJobModel = collection<ComplianceJobRow>('ComplianceJob', 'compliance_jobs', jobSchema);

/** A job in the hands of the worker that has taken it. */
export type ClaimedJob = Pick<ComplianceJobRow, '_id' | 'tenantId' | 'claim'>;

/** Exports and deletions. What a claimed job writes is refused, with false, once another worker has taken it. */
export interface ComplianceJobRepository {
  /** False: its space has as many of its kind and scope as may be open; exact under concurrent calls. */
  insert(row: ComplianceJobRow): Promise<boolean>;
  find(space: Space, kind: ComplianceKind, id: string): Promise<ComplianceJobRow | undefined>;
  /** One row more than the limit. */
  list(space: Space, kind: ComplianceKind, query: ListQuery): Promise<ComplianceJobRow[]>;
  /** Those that have not ended, the oldest first, at most `limit`. */
  listOpen(space: Space, kind: ComplianceKind, limit: number): Promise<ComplianceJobRow[]>;
  /**
   * Takes a job until `until`; whoever dies with it loses it then. Undefined: another has it, it has ended, or another one
   * of its tenant and kind is in hand.
   */
  claim(job: ComplianceJob, now: number, until: number): Promise<ComplianceJobRow | undefined>;
  /** Holds it until then. */
  renew(job: ClaimedJob, until: number): Promise<boolean>;
  /** Gives it up until then; others of its tenant may run. */
  release(job: ClaimedJob, until: number): Promise<boolean>;
  /** The next one of this tenant and kind that may be taken. */
  next(job: Pick<ComplianceJobRow, 'tenantId' | 'kind'>, now: number): Promise<ComplianceJob | undefined>;
  completeExport(job: ClaimedJob, archive: ExportArchive, now: number): Promise<boolean>;
  /** From here on the deletion says nothing of its entity any more but the pseudonym. */
  completeDeletion(job: ClaimedJob, reason: string | undefined, now: number): Promise<boolean>;
  fail(job: ClaimedJob, error: string, now: number): Promise<boolean>;
  /** Adds to what a deletion has found so far. */
  addToReport(job: ClaimedJob, found: DeletionReport): Promise<void>;
  /** An ended job whose webhook event has not been published. */
  findUnpublished(job: ComplianceJob): Promise<ComplianceJobRow | undefined>;
  markPublished(job: ClaimedJob): Promise<void>;
  /** One job of each tenant and kind of which nobody has any in hand, and those whose event has not been published. */
  due(now: number, limit: number): Promise<ComplianceJob[]>;
}

/** What an ended job has no more. */
const ENDED = { turn: 1, sole: 1 } as const;

/** All that jobs like it may have; the unique index gives each to one. */
function placesOf({ tenantId, mode = 'live', kind, scope }: ComplianceJobRow): string[] {
  if (kind === 'deletion' && scope === 'tenant') return [`${tenantId} ${mode}`];
  return Array.from({ length: OPEN_MAX[kind] }, (_, number) => `${tenantId} ${mode} ${kind} ${number}`);
}

/** An id begins with its kind: `exp_`, `del_`. */
function turnOf(tenantId: string, jobId: string): string {
  return `${tenantId} ${jobId.slice(0, 3)}`;
}

/** How many of a space may be open: exports, and deletions of entities (docs/spec/contract.md section 8, Deletions). */
export const OPEN_MAX: Readonly<Record<ComplianceKind, number>> = { export: 5, deletion: 20 };

/** Others may take the places that were free: as often as there are callers at once, with room to spare. */
const TRIES_MAX = 200;

const OPEN = { $in: ['queued', 'in_progress'] as const };

export function createComplianceJobRepository(connection: Connection): ComplianceJobRepository {
  const jobs = complianceJobModel(connection);
  const held = ({ _id, tenantId, claim }: ClaimedJob) => ({ _id, tenantId, claim, status: 'in_progress' as const });

  async function change(job: ClaimedJob, update: object): Promise<boolean> {
    const { matchedCount } = await jobs.updateOne(held(job), update);
    return matchedCount === 1;
  }

  /** Its space's jobs that may not be open beside too many of it. */
  function alike({ tenantId, mode = 'live', kind, scope }: ComplianceJobRow) {
    return { ...inSpace({ tenantId, mode }), kind, ...(kind === 'deletion' ? { scope } : {}) };
  }

  async function isTaken(row: ComplianceJobRow, sole: string): Promise<boolean> {
    try {
      await jobs.create({ ...row, sole });
      return false;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      // The answer to an insert can be lost, and the driver tries again.
      return (await jobs.exists({ _id: row._id, tenantId: row.tenantId })) === null;
    }
  }

  return {
    async insert(row) {
      const places = placesOf(row);
      for (let tries = 0; tries < TRIES_MAX; tries += 1) {
        const open = await jobs.find({ ...alike(row), status: OPEN }, { sole: 1 }).lean();
        // It is sent again after a lost answer.
        if (open.some(({ _id }) => _id === row._id)) return true;
        const taken = new Set(open.map(({ sole }) => sole));
        // Rows of an earlier version have no place.
        const free = open.length < places.length ? places.filter((place) => !taken.has(place)) : [];
        // Not the first one, which all would take who ask at once.
        const place = free[Math.floor(Math.random() * free.length)];
        if (place === undefined) return false;
        if (!(await isTaken(row, place))) return true;
        // A worker of an earlier version has ended its holder, and knew nothing of the place.
        await jobs.updateMany({ ...alike(row), sole: place, status: { $nin: OPEN.$in } }, { $unset: { sole: 1 } });
      }
      return false;
    },

    async find(space, kind, id) {
      return (await jobs.findOne({ _id: id, ...inSpace(space), kind }).lean()) ?? undefined;
    },

    list: (space, kind, query) => listRows(jobs, { ...inSpace(space), kind }, query),

    listOpen: (space, kind, limit) =>
      jobs
        .find({ ...inSpace(space), kind, status: OPEN })
        .sort({ createdAt: 1, _id: 1 })
        .limit(limit)
        .lean(),

    async claim({ tenantId, jobId }, now, until) {
      try {
        const taken = await jobs
          .findOneAndUpdate(
            { _id: jobId, tenantId, status: OPEN, claimedUntil: { $lte: now } },
            { $set: { status: 'in_progress', claimedUntil: until, turn: turnOf(tenantId, jobId) }, $inc: { claim: 1 } },
            { returnDocument: 'after' },
          )
          .lean();
        return taken ?? undefined;
      } catch (error) {
        if (isDuplicateKey(error)) return undefined;
        throw error;
      }
    },

    renew: (job, until) => change(job, { $set: { claimedUntil: until } }),

    release: (job, until) => change(job, { $set: { claimedUntil: until }, $unset: { turn: 1 } }),

    async next({ tenantId, kind }, now) {
      const open = jobs.findOne({ tenantId, kind, status: OPEN, claimedUntil: { $lte: now } }, { tenantId: 1 });
      const row = await open.sort({ createdAt: 1, _id: 1 }).lean();
      return row === null ? undefined : { tenantId, jobId: row._id };
    },

    completeExport: (job, archive, now) =>
      change(job, { $set: { status: 'completed', completedAt: now, archive, untold: true }, $unset: ENDED }),

    completeDeletion: (job, reason, now) =>
      change(job, {
        $set: { status: 'completed', completedAt: now, untold: true, ...(reason === undefined ? {} : { reason }) },
        $unset: { entityId: 1, ...ENDED },
      }),

    fail: (job, error, now) => change(job, { $set: { status: 'failed', completedAt: now, error }, $unset: ENDED }),

    async addToReport(job, found) {
      const counts = Object.entries(found).filter(([, count]) => count > 0);
      if (counts.length === 0) return;
      await change(job, { $inc: Object.fromEntries(counts.map(([store, count]) => [`report.${store}`, count])) });
    },

    async findUnpublished({ tenantId, jobId }) {
      return (await jobs.findOne({ _id: jobId, tenantId, untold: true }).lean()) ?? undefined;
    },

    async markPublished({ _id, tenantId }) {
      await jobs.updateOne({ _id, tenantId }, { $unset: { untold: 1 } });
    },

    async due(now, limit) {
      const names = { tenantId: 1 } as const;
      const [open, unpublished] = await Promise.all([
        jobs.aggregate<{ _id: { tenantId: string }; jobId: string }>([
          { $match: { status: OPEN, claimedUntil: { $lte: now } } },
          // One whose worker has died has the turn of its tenant: first of all it must go on.
          { $sort: { turn: -1, createdAt: 1, _id: 1 } },
          { $group: { _id: { tenantId: '$tenantId', kind: '$kind' }, jobId: { $first: '$_id' } } },
          { $limit: limit },
        ]),
        jobs.find({ untold: true }, names).limit(limit).lean(),
      ]);
      return [
        ...open.map(({ _id: { tenantId }, jobId }) => ({ tenantId, jobId })),
        ...unpublished.map(({ _id, tenantId }) => ({ tenantId, jobId: _id })),
      ];
    },
  };
}
