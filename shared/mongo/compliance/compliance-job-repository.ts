import type { Connection } from 'mongoose';

import type {
  ComplianceKind,
  ComplianceScope,
  ComplianceStatus,
  DeletionReport,
  ExportedFile,
} from '../../contracts/compliance.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import type { Space } from '../../contracts/space.ts';
import { collection, listRows, inSpace } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import type { RowOfSpace } from '../collection.ts';

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
  /** The fence: rises with every claim, so only the worker with the latest claim may write. */
  claim: number;
  /** Until then no other worker may claim it; where it is queued, when it may run at the earliest. */
  claimedUntil: number;
  createdAt: number;
  /**
   * Which of the limited number of places (`OPEN_MAX`) the job occupies until it has ended, as text: tenant, mode, kind and
   * number; a deletion of the whole tenant has one place, without the last two, and no more once it is about to complete. A
   * unique index keeps two open jobs from having one place, so the limit holds under concurrent inserts.
   */
  sole?: string;
  /**
   * Tenant and kind, while a worker holds the job. A unique index allows one job with a given value, so of a tenant one
   * export and one deletion run at a time.
   */
  turn?: string;
  completedAt?: number;
  /**
   * The job has completed, and its webhook event has yet to be published. The field keeps this name ("not yet told"), as the
   * rows of running systems have it.
   */
  unpublished?: boolean;
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
  /** The claim that wrote its chunks; those of an interrupted claim have another number. */
  claim: number;
  files: ExportedFile[];
  expiresAt: number;
}

export const complianceJobModel = collection<ComplianceJobRow>('compliance_jobs', [
  [{ tenantId: 1, kind: 1, createdAt: -1 }],
  [{ status: 1, claimedUntil: 1 }],
  [{ sole: 1 }, { unique: true, partialFilterExpression: { sole: { $exists: true } } }],
  [{ turn: 1 }, { unique: true, partialFilterExpression: { turn: { $exists: true } } }],
  [{ unpublished: 1 }, { partialFilterExpression: { unpublished: true } }],
]);

/** How many may be open in a space: exports, and deletions of entities (docs/spec.md#compliance). */
export const OPEN_MAX: Readonly<Record<ComplianceKind, number>> = { export: 5, deletion: 20 };

/** The statuses of a job that has not ended. */
export const OPEN = { $in: ['queued', 'in_progress'] as const };

/** All places (`sole`) that there are for jobs like this one. */
function placesFor({ tenantId, mode = 'live', kind, scope }: ComplianceJobRow): string[] {
  if (kind === 'deletion' && scope === 'tenant') return [`${tenantId} ${mode}`];
  return Array.from({ length: OPEN_MAX[kind] }, (_, number) => `${tenantId} ${mode} ${kind} ${number}`);
}

/** The jobs that share the places of this one. */
function sharingPlaces({ tenantId, mode = 'live', kind, scope }: ComplianceJobRow) {
  return { ...inSpace({ tenantId, mode }), kind, ...(kind === 'deletion' ? { scope } : {}) };
}

/** Concurrent inserts may take a place first, once each; this allows for more of them than there can be at once. */
const TRIES_MAX = 200;

/** False: another job took the place first. */
async function insertInto(
  jobs: ReturnType<typeof complianceJobModel>,
  place: string,
  row: ComplianceJobRow,
): Promise<boolean> {
  try {
    await jobs.create({ ...row, sole: place } satisfies ComplianceJobRow);
    return true;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    // The driver repeats an insert whose answer was lost, so the duplicate may be this very job.
    return (await jobs.exists({ _id: row._id, tenantId: row.tenantId })) !== null;
  }
}

/** Exports and deletions as their tenant sees them; compliance-work-repository.ts is the side of the workers. */
export function createComplianceJobRepository(connection: Connection) {
  const jobs = complianceJobModel(connection);

  /** A free place, drawn at random: concurrent callers would all take the first one. Undefined: none is free. */
  function freePlace(row: ComplianceJobRow, open: readonly Pick<ComplianceJobRow, 'sole'>[]): string | undefined {
    const places = placesFor(row);
    const taken = new Set(open.map(({ sole }) => sole));
    const free = places.filter((place) => !taken.has(place));
    return free[Math.floor(Math.random() * free.length)];
  }

  return {
    /**
     * Safe to repeat. False: as many of its kind and scope are open in its space as may be (`OPEN_MAX`; of deletions of a
     * whole tenant one), exact under concurrent calls.
     */
    async insert(row: ComplianceJobRow): Promise<boolean> {
      for (let tries = 0; tries < TRIES_MAX; tries += 1) {
        const open = await jobs.find({ ...sharingPlaces(row), status: OPEN }, { sole: 1 }).lean();
        // A call that is repeated because its answer was lost.
        if (open.some(({ _id }) => _id === row._id)) return true;
        const place = freePlace(row, open);
        if (place === undefined) return false;
        if (await insertInto(jobs, place, row)) return true;
      }
      return false;
    },

    async find(space: Space, kind: ComplianceKind, id: string): Promise<ComplianceJobRow | undefined> {
      return (await jobs.findOne({ _id: id, ...inSpace(space), kind }).lean()) ?? undefined;
    },

    /** One row more than the limit. */
    list: (space: Space, kind: ComplianceKind, query: ListQuery): Promise<ComplianceJobRow[]> =>
      listRows(jobs, { ...inSpace(space), kind }, query),

    /** Those that have not ended, the oldest first; there are few (`OPEN_MAX`). */
    listOpen: (space: Space, kind: ComplianceKind): Promise<ComplianceJobRow[]> =>
      jobs
        .find({ ...inSpace(space), kind, status: OPEN })
        .sort({ createdAt: 1, _id: 1 })
        .lean(),
  };
}
