/**
 * The door of exports and deletions. Each is a row of `compliance_jobs`; a job of the queue only names it, and a sweep
 * queues rows that nobody works on. A worker takes a row by a claim that only rises and a lease of 30 s. A job that
 * runs again starts from the beginning, so every step may be repeated.
 *
 * - **Export** (run-export.ts): streams rows into a ZIP, kept in MongoDB in pieces of 512 KiB. export-files.ts names
 *   every field that may leave.
 * - **Deletion** (run-deletion.ts): sets a mark, ends the subject's requests, and goes through all stores until a pass
 *   finds nothing. In `shared/mongo/compliance`, conversation-eraser.ts deletes conversations, copy-eraser.ts stored
 *   answers, events and exports, and record-eraser.ts puts a pseudonym into records. The mark refuses late writes
 *   (shared/erasure-gate.ts).
 *
 * A tenant runs one job of each kind at a time; waiting deletions of entities go together. Others wait in MongoDB and
 * take no place in the queue (docs/decisions/0014-retention-and-erasure.md).
 */
import type { ComplianceJob } from '../../shared/contracts/jobs.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ComplianceJobRow } from '../../shared/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceWorkRepository } from '../../shared/mongo/compliance/compliance-work-repository.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { ComplianceQueue } from '../../shared/queue/queues.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import type { EventSink, WebhookEvent } from '../../shared/webhooks/publish.ts';

export interface JobHands {
  /** Aborts when another worker has claimed the job, or this worker stops. */
  signal: AbortSignal;
  /** Renews the claim. Throws if another worker has the job, or this one stops. */
  hold(): Promise<void>;
}

/** Runs a job and marks it completed. Every step must be safe to repeat. */
export type RunKind = (job: ComplianceJobRow, hands: JobHands) => Promise<void>;

/** Another worker has claimed the job, or a deletion has removed its row. */
export class JobLost extends Error {
  override readonly name = 'JobLost';
  constructor() {
    super('The job is in other hands');
  }
}

export interface RunJobDeps {
  jobs: ComplianceWorkRepository;
  queue: ComplianceQueue;
  kinds: Record<ComplianceJobRow['kind'], RunKind>;
  events: EventSink;
  clock: Clock;
  stopping: AbortSignal;
  log: Logger;
}

/** Another worker may take the claim after this long without renewal. */
const LEASE_MS = 30_000;
const RENEW_MS = 8_000;
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 60_000;
/** A job is claimed at most so often; with the pauses between, this takes about a quarter of an hour. */
const CLAIMS_MAX = 20;

const FAILED = 'The service could not complete this job; ask for it again, and tell the administrator if it stays.';

function toEvent(
  { _id, tenantId, mode = 'live', kind, scope, entityId, entityHash }: ComplianceJobRow,
  now: number,
): WebhookEvent {
  const about = { id: _id, scope, entity_id: entityId ?? null };
  return kind === 'export'
    ? { tenantId, mode, type: 'compliance.export.completed', cause: _id, data: about, now }
    : {
        tenantId,
        mode,
        type: 'compliance.deletion.completed',
        cause: _id,
        data: { ...about, entity_hash: entityHash ?? null },
        now,
      };
}

async function withHands(
  { jobs, clock, stopping }: RunJobDeps,
  job: ComplianceJobRow,
  run: (hands: JobHands) => Promise<void>,
): Promise<void> {
  const lost = new AbortController();
  const signal = AbortSignal.any([lost.signal, stopping]);
  const hold = async () => {
    signal.throwIfAborted();
    if (await jobs.renew(job, clock.now() + LEASE_MS)) return;
    lost.abort(new JobLost());
    signal.throwIfAborted();
  };
  const renewing = repeat(
    hold,
    () => RENEW_MS,
    // A failed renewal is tried again: the lease outlasts several. A lost claim has already aborted the signal.
    () => undefined,
  );
  try {
    await run({ signal, hold });
  } catch (error) {
    // The abort may have made the run fail with a different error.
    throw lost.signal.aborted ? new JobLost() : error;
  } finally {
    await renewing.stop();
  }
}

async function giveUp(deps: RunJobDeps, job: ComplianceJobRow, error: unknown): Promise<void> {
  const { stopping, jobs, clock, log } = deps;
  const { tenantId, claim, kind } = job;
  if (error instanceof JobLost) return;
  if (stopping.aborted) {
    await jobs.release(job, clock.now());
    return;
  }
  if (claim >= CLAIMS_MAX) {
    log.error(`The ${kind} ${job._id} failed and is given up.`, { tenantId, claim, error });
    await jobs.fail(job, FAILED, clock.now());
    return;
  }
  log.warn(`The ${kind} ${job._id} failed; it is tried again.`, { tenantId, claim, error });
  const pauseMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (claim - 1));
  await jobs.release(job, clock.now() + pauseMs);
}

/**
 * Runs one job, unless another worker does, and publishes its end. One of each kind per tenant, so that a tenant with
 * many keeps no other waiting. A deletion of an entity takes the waiting ones along: it mostly pauses.
 */
export function createRunJob(deps: RunJobDeps): (job: ComplianceJob) => Promise<void> {
  const { jobs, queue, kinds, events, clock, stopping, log } = deps;

  /** Jobs waiting for their turn are not in the queue. The sweep would also find the next one, but later. */
  async function wakeNext(job: ComplianceJobRow): Promise<void> {
    if (stopping.aborted) return;
    const next = await jobs.next(job, clock.now());
    if (next !== undefined) await queue.add(next).catch(() => undefined);
  }

  async function run(job: ComplianceJobRow): Promise<void> {
    try {
      await withHands(deps, job, (hands) => kinds[job.kind](job, hands));
      log.info(`The ${job.kind} ${job._id} is completed.`, { tenantId: job.tenantId, claim: job.claim });
    } catch (error) {
      await giveUp(deps, job, error);
    }
  }

  async function publishEnd(named: ComplianceJob): Promise<void> {
    const ended = await jobs.findUnpublished(named);
    if (ended === undefined) return;
    await events.publish([toEvent(ended, clock.now())]);
    await jobs.markPublished(ended);
  }

  async function runTogether(job: ComplianceJobRow): Promise<void> {
    const now = clock.now();
    // If this fails, the others wait until the sweep finds them.
    const beside = await jobs.claimBeside(job, now, now + LEASE_MS).catch(() => []);
    await Promise.all([job, ...beside].map(run));
    await wakeNext(job);
    for (const { tenantId, _id: jobId } of beside) await publishEnd({ tenantId, jobId });
  }

  return async (named) => {
    const now = clock.now();
    const job = await jobs.claim(named, now, now + LEASE_MS);
    if (job !== undefined) await runTogether(job);
    await publishEnd(named);
  };
}
