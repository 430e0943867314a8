import type { Connection, Model } from 'mongoose';

import type { DeletionReport } from '../../contracts/compliance.ts';
import type { ComplianceJob } from '../../contracts/jobs.ts';
import { createClaims } from '../collection.ts';
import type { ClaimedRow } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { complianceJobModel, OPEN } from './compliance-job-repository.ts';
import type { ComplianceJobRow, ExportArchive } from './compliance-job-repository.ts';

/**
 * The workers' side of exports and deletions. A worker claims a job for a limited time and renews the claim while it
 * works. Writes under an outdated claim are refused with false.
 */
export type ComplianceWorkRepository = ReturnType<typeof createComplianceWorkRepository>;

/** A job's id begins with its kind: `exp_` or `del_`. */
function turnOf(tenantId: string, jobId: string): string {
  return `${tenantId} ${jobId.slice(0, 3)}`;
}

async function claimBeside(
  claims: ReturnType<typeof createClaims<ComplianceJobRow>>,
  { tenantId, kind, scope }: ComplianceJobRow,
  now: number,
  until: number,
): Promise<ComplianceJobRow[]> {
  const beside: ComplianceJobRow[] = [];
  if (kind !== 'deletion' || scope !== 'entity') return beside;
  const waiting = { tenantId, kind, scope, status: OPEN, claimedUntil: { $lte: now } };
  for (;;) {
    const held = { status: 'in_progress', claimedUntil: until } as const;
    const taken = await claims.claim(waiting, held, { createdAt: 1, _id: 1 });
    if (taken === undefined) return beside;
    beside.push(taken);
  }
}

async function dueJobs(jobs: Model<ComplianceJobRow>, now: number, limit: number): Promise<ComplianceJob[]> {
  const names = { tenantId: 1 } as const;
  const [open, unpublished] = await Promise.all([
    jobs.aggregate<{ _id: { tenantId: string }; jobId: string }>([
      { $match: { status: OPEN, claimedUntil: { $lte: now } } },
      // A dead worker's job keeps its tenant's turn, so no other job of the tenant can run first.
      { $sort: { turn: -1, createdAt: 1, _id: 1 } },
      { $group: { _id: { tenantId: '$tenantId', kind: '$kind' }, jobId: { $first: '$_id' } } },
      { $limit: limit },
    ]),
    jobs.find({ unpublished: true }, names).limit(limit).lean(),
  ]);
  return [
    ...open.map(({ _id: { tenantId }, jobId }) => ({ tenantId, jobId })),
    ...unpublished.map(({ _id, tenantId }) => ({ tenantId, jobId: _id })),
  ];
}

function createJobClaims(jobs: Model<ComplianceJobRow>, claims: ReturnType<typeof createClaims<ComplianceJobRow>>) {
  return {
    /** Undefined: claimed, ended, not due, or the tenant's turn is with another job of the kind. */
    async claim({ tenantId, jobId }: ComplianceJob, now: number, until: number): Promise<ComplianceJobRow | undefined> {
      try {
        return await claims.claim(
          { _id: jobId, tenantId, status: OPEN, claimedUntil: { $lte: now } },
          { status: 'in_progress', claimedUntil: until, turn: turnOf(tenantId, jobId) },
        );
      } catch (error) {
        // Another job of this tenant and kind is running.
        if (isDuplicateKey(error)) return undefined;
        throw error;
      }
    },

    /** Also claims the tenant's other waiting entity deletions: they share its turn, and pause together. */
    claimBeside: (job: ComplianceJobRow, now: number, until: number): Promise<ComplianceJobRow[]> =>
      claimBeside(claims, job, now, until),

    /** The oldest job of this tenant and kind that may be claimed. */
    async next(
      { tenantId, kind }: Pick<ComplianceJobRow, 'tenantId' | 'kind'>,
      now: number,
    ): Promise<ComplianceJob | undefined> {
      const open = jobs.findOne({ tenantId, kind, status: OPEN, claimedUntil: { $lte: now } }, { tenantId: 1 });
      const row = await open.sort({ createdAt: 1, _id: 1 }).lean();
      return row === null ? undefined : { tenantId, jobId: row._id };
    },

    /** At most `limit` each: a claimable job per tenant and kind, and jobs with an unpublished event. */
    due: (now: number, limit: number): Promise<ComplianceJob[]> => dueJobs(jobs, now, limit),
  };
}

export function createComplianceWorkRepository(connection: Connection) {
  const jobs = complianceJobModel(connection);
  const claims = createClaims(jobs);
  const change = (job: ClaimedRow, update: object) => claims.write(job, update, { status: 'in_progress' });
  /** Gives place and turn back. */
  const end = (job: ClaimedRow, $set: object, unset: object = {}) =>
    change(job, { $set, $unset: { turn: 1, sole: 1, ...unset } });

  return {
    ...createJobClaims(jobs, claims),

    renew: (job: ClaimedRow, until: number): Promise<boolean> => change(job, { $set: { claimedUntil: until } }),

    /** No worker claims the job before `until`; other jobs of its tenant may run at once. */
    release: (job: ClaimedRow, until: number): Promise<boolean> =>
      change(job, { $set: { claimedUntil: until }, $unset: { turn: 1 } }),

    /** The tenant may ask for the same again while the job still runs. */
    giveUpPlace: (job: ClaimedRow): Promise<boolean> => change(job, { $unset: { sole: 1 } }),

    completeExport: (job: ClaimedRow, archive: ExportArchive, now: number): Promise<boolean> =>
      end(job, { status: 'completed', completedAt: now, unpublished: true, archive }),

    /** Replaces the entity's id by its pseudonym. */
    completeDeletion(job: ClaimedRow, reason: string | undefined, now: number): Promise<boolean> {
      const said = reason === undefined ? {} : { reason };
      return end(job, { status: 'completed', completedAt: now, unpublished: true, ...said }, { entityId: 1 });
    },

    fail: (job: ClaimedRow, error: string, now: number): Promise<boolean> =>
      end(job, { status: 'failed', completedAt: now, error }),

    async addToReport(job: ClaimedRow, found: DeletionReport): Promise<void> {
      const counts = Object.entries(found).filter(([, count]) => count > 0);
      if (counts.length === 0) return;
      await change(job, { $inc: Object.fromEntries(counts.map(([store, count]) => [`report.${store}`, count])) });
    },

    /** Undefined: not completed, or its event is published. */
    async findUnpublished({ tenantId, jobId }: ComplianceJob): Promise<ComplianceJobRow | undefined> {
      return (await jobs.findOne({ _id: jobId, tenantId, unpublished: true }).lean()) ?? undefined;
    },

    async markPublished({ _id, tenantId }: ClaimedRow): Promise<void> {
      await jobs.updateOne({ _id, tenantId }, { $unset: { unpublished: 1 } });
    },
  };
}
