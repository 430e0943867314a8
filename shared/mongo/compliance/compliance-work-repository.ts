import type { Connection, Model } from 'mongoose';

import type { DeletionReport } from '../../contracts/compliance.ts';
import type { ComplianceJob } from '../../contracts/jobs.ts';
import { createClaims } from '../collection.ts';
import type { ClaimedRow } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { complianceJobModel, OPEN } from './compliance-job-repository.ts';
import type { ComplianceJobRow, ExportArchive } from './compliance-job-repository.ts';

/**
 * Exports and deletions as the workers that run them see them. A worker claims a job for a limited time and renews the
 * claim while it works. Writes of a worker whose job another one has claimed since are refused, with false.
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
      // A job whose worker died still has its tenant's turn, so no other job of the tenant can run before it.
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

/** Finds jobs that may be claimed, and claims them. */
function createJobClaims(jobs: Model<ComplianceJobRow>, claims: ReturnType<typeof createClaims<ComplianceJobRow>>) {
  return {
    /**
     * Claims a job until `until`. Undefined: another worker has it, it has ended, its time has not come, or another job of its
     * tenant and kind is running.
     */
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

    /**
     * The other deletions of entities of the tenant that wait, or whose worker has died, claimed as well: they go with the one
     * that has the turn, and all of them pause at the same time. Empty for any other job.
     */
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

    /**
     * What to queue: one job of each tenant and kind that may be claimed, and the jobs whose webhook event has not been
     * published. At most `limit` of either.
     */
    due: (now: number, limit: number): Promise<ComplianceJob[]> => dueJobs(jobs, now, limit),
  };
}

export function createComplianceWorkRepository(connection: Connection) {
  const jobs = complianceJobModel(connection);
  const claims = createClaims(jobs);
  const change = (job: ClaimedRow, update: object) => claims.write(job, update, { status: 'in_progress' });
  /** An ended job gives its place and its turn back. */
  const end = (job: ClaimedRow, $set: object, unset: object = {}) =>
    change(job, { $set, $unset: { turn: 1, sole: 1, ...unset } });

  return {
    ...createJobClaims(jobs, claims),

    /** Extends the claim. */
    renew: (job: ClaimedRow, until: number): Promise<boolean> => change(job, { $set: { claimedUntil: until } }),

    /** Gives the claim up. Nobody claims the job before `until`; other jobs of its tenant may run at once. */
    release: (job: ClaimedRow, until: number): Promise<boolean> =>
      change(job, { $set: { claimedUntil: until }, $unset: { turn: 1 } }),

    /** The same may be asked for again from now on, although the job still runs. */
    giveUpPlace: (job: ClaimedRow): Promise<boolean> => change(job, { $unset: { sole: 1 } }),

    completeExport: (job: ClaimedRow, archive: ExportArchive, now: number): Promise<boolean> =>
      end(job, { status: 'completed', completedAt: now, unpublished: true, archive }),

    /** Removes the entity's id from the job: its pseudonym is all that stays. */
    completeDeletion(job: ClaimedRow, reason: string | undefined, now: number): Promise<boolean> {
      const said = reason === undefined ? {} : { reason };
      return end(job, { status: 'completed', completedAt: now, unpublished: true, ...said }, { entityId: 1 });
    },

    fail: (job: ClaimedRow, error: string, now: number): Promise<boolean> =>
      end(job, { status: 'failed', completedAt: now, error }),

    /** Adds what a pass of a deletion has found to the job's report. */
    async addToReport(job: ClaimedRow, found: DeletionReport): Promise<void> {
      const counts = Object.entries(found).filter(([, count]) => count > 0);
      if (counts.length === 0) return;
      await change(job, { $inc: Object.fromEntries(counts.map(([store, count]) => [`report.${store}`, count])) });
    },

    /** The job, if it has completed and its webhook event has not been published. */
    async findUnpublished({ tenantId, jobId }: ComplianceJob): Promise<ComplianceJobRow | undefined> {
      return (await jobs.findOne({ _id: jobId, tenantId, unpublished: true }).lean()) ?? undefined;
    },

    async markPublished({ _id, tenantId }: ClaimedRow): Promise<void> {
      await jobs.updateOne({ _id, tenantId }, { $unset: { unpublished: 1 } });
    },
  };
}
