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

/** Times are milliseconds since the epoch. */
export interface ComplianceJobRow extends RowOfSpace {
  _id: string;
  kind: ComplianceKind;
  scope: ComplianceScope;
  /** Kept until the entity is deleted. */
  entityId?: string;
  /** The pseudonym: on deletions of an entity, and on its exports once it is deleted. */
  entityHash?: string;
  status: ComplianceStatus;
  /** The fence rises with every claim: only the latest claim's worker may write. */
  claim: number;
  /** No other worker may claim the job before; if it is queued, it runs then at the earliest. */
  claimedUntil: number;
  createdAt: number;
  /**
   * One of the limited places (`OPEN_MAX`), until the job has ended: tenant, mode, kind, number. A deletion of the
   * whole tenant has one place, without the last two, and gives it up shortly before it completes. A unique index gives
   * a place to one open job, even under concurrent inserts.
   */
  sole?: string;
  /** Tenant and kind, while claimed. A unique index lets a tenant run one export and one deletion at a time. */
  turn?: string;
  completedAt?: number;
  /** Completed, with its webhook event unpublished. Running systems' rows fix the name ("not yet told"). */
  unpublished?: boolean;
  error?: string;
  archive?: ExportArchive;
  /** Deleted early, because an entity in the archive was. */
  archiveGone?: boolean;
  reason?: string;
  report?: DeletionReport;
}

export interface ExportArchive {
  bytes: number;
  sha256: string;
  chunks: number;
  /** The claim that wrote the chunks; an interrupted claim's chunks have another number. */
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

/** Open at once in a space (docs/spec.md#compliance). */
export const OPEN_MAX: Readonly<Record<ComplianceKind, number>> = { export: 5, deletion: 20 };

export const OPEN = { $in: ['queued', 'in_progress'] as const };

/** All places (`sole`) for jobs like this one. */
function placesFor({ tenantId, mode = 'live', kind, scope }: ComplianceJobRow): string[] {
  if (kind === 'deletion' && scope === 'tenant') return [`${tenantId} ${mode}`];
  return Array.from({ length: OPEN_MAX[kind] }, (_, number) => `${tenantId} ${mode} ${kind} ${number}`);
}

function sharingPlaces({ tenantId, mode = 'live', kind, scope }: ComplianceJobRow) {
  return { ...inSpace({ tenantId, mode }), kind, ...(kind === 'deletion' ? { scope } : {}) };
}

/** Each concurrent insert may take a place first, once; there can never be so many at once. */
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

/** The tenant's side; compliance-work-repository.ts is the workers'. */
export function createComplianceJobRepository(connection: Connection) {
  const jobs = complianceJobModel(connection);

  /** Random, because concurrent callers would all take the first place. Undefined: none is free. */
  function freePlace(row: ComplianceJobRow, open: readonly Pick<ComplianceJobRow, 'sole'>[]): string | undefined {
    const places = placesFor(row);
    const taken = new Set(open.map(({ sole }) => sole));
    const free = places.filter((place) => !taken.has(place));
    return free[Math.floor(Math.random() * free.length)];
  }

  return {
    /** Safe to repeat. False: its kind and scope have no free place in the space, exact under concurrent calls. */
    async insert(row: ComplianceJobRow): Promise<boolean> {
      for (let tries = 0; tries < TRIES_MAX; tries += 1) {
        const open = await jobs.find({ ...sharingPlaces(row), status: OPEN }, { sole: 1 }).lean();
        // A repeated call, whose first answer was lost.
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

    list: (space: Space, kind: ComplianceKind, query: ListQuery): Promise<ComplianceJobRow[]> =>
      listRows(jobs, { ...inSpace(space), kind }, query),

    /** Oldest first; there are few (`OPEN_MAX`). */
    listOpen: (space: Space, kind: ComplianceKind): Promise<ComplianceJobRow[]> =>
      jobs
        .find({ ...inSpace(space), kind, status: OPEN })
        .sort({ createdAt: 1, _id: 1 })
        .lean(),
  };
}
