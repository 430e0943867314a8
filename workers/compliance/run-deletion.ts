import { setTimeout as pause } from 'node:timers/promises';

import type { DeletionReport } from '../../shared/contracts/compliance.ts';
import { overseenBy } from '../../shared/contracts/space.ts';
import { hideName } from '../../shared/domain/pseudonyms.ts';
import type { Pseudonyms } from '../../shared/domain/pseudonyms.ts';
import type { ComplianceJobRow } from '../../shared/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceWorkRepository } from '../../shared/mongo/compliance/compliance-work-repository.ts';
import type { ConversationEraser } from '../../shared/mongo/compliance/conversation-eraser.ts';
import type { CopyEraser } from '../../shared/mongo/compliance/copy-eraser.ts';
import type { ErasureRepository } from '../../shared/mongo/compliance/erasure-repository.ts';
import type { RecordEraser } from '../../shared/mongo/compliance/record-eraser.ts';
import type { TenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import type { AcceptanceClock } from '../../shared/requests/record-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { DeletedSubject, EraseRequests } from './erase-requests.ts';
import type { JobHands, RunKind } from './run-job.ts';

export interface RunDeletionDeps {
  jobs: ComplianceWorkRepository;
  tenants: TenantRepository;
  erasures: ErasureRepository;
  requests: EraseRequests;
  conversations: ConversationEraser;
  copies: CopyEraser;
  records: RecordEraser;
  pseudonyms: Pseudonyms;
  acceptanceClock: AcceptanceClock;
  clock: Clock;
  /** Writes that have begun finish within this time; milliseconds. */
  quietMs: number;
}

/** Limits the deletion of an entity that is still in use: each pass would find something new. */
const PASSES_MAX = 5;

function totalOf(report: DeletionReport): number {
  return Object.values(report).reduce((sum, count) => sum + count, 0);
}

function hideIn({ pseudonyms }: RunDeletionDeps, subject: DeletedSubject, text: string): string {
  const { tenantId, entityId } = subject;
  return entityId === undefined ? text : hideName(text, entityId, pseudonyms.of(tenantId, entityId));
}

async function eraseStores(
  deps: RunDeletionDeps,
  subject: DeletedSubject,
  seq: number,
  hands: JobHands,
): Promise<DeletionReport> {
  const { conversations, copies, pseudonyms, clock, records } = deps;

  const steps = [
    () => conversations.answers(subject, seq),
    () => conversations.entities(subject),
    () => copies.idempotency(subject, (text) => hideIn(deps, subject, text)),
    () => copies.webhooks(subject),
    () => copies.requestLog(subject),
    () => copies.exports(subject, pseudonyms, clock.now()),
    () => records.ledger(subject),
    () => records.usage(subject),
    () => records.audit(subject),
  ];
  let report: DeletionReport = {};
  for (const step of steps) {
    hands.signal.throwIfAborted();
    report = { ...report, ...(await step()) };
  }
  return report;
}

/**
 * Deletes an entity, or all conversations of a tenant: only test data where a test key asked, else live and test data,
 * because the law may require it. Passes through all stores repeat until one finds nothing, because a store may be
 * written to behind a pass. A mark, set at the beginning of each, keeps requests accepted before it from storing
 * anything later.
 */
export function createRunDeletion(deps: RunDeletionDeps): RunKind {
  const { jobs, tenants, erasures, requests, conversations, pseudonyms, clock, quietMs } = deps;

  /** `number`: from 1. Returns how much it found, and the place in the order of acceptance up to which it deleted. */
  async function pass(job: ComplianceJobRow, subject: DeletedSubject, number: number, hands: JobHands) {
    const { tenantId, shard, entityId } = subject;
    // A line of a batch may have been on its way to Redis as the pass before erased it.
    if (number > 1) await pause(quietMs, undefined, { signal: hands.signal });
    const seq = await deps.acceptanceClock.read(shard);
    const pseudonym = entityId === undefined ? undefined : pseudonyms.of(tenantId, entityId);
    await erasures.mark(subject, pseudonym, { seq, now: clock.now() });
    // Batches are erased before their requests are ended: a batch would send the lines again.
    const lines = await conversations.batches(subject, pseudonyms);
    const ended = await requests.end(subject, seq, hands);
    await jobs.addToReport(job, { queued_jobs: ended });
    // Meanwhile callers read the ends of their requests, and workers write what follows an end.
    if (ended > 0) await pause(quietMs, undefined, { signal: hands.signal });
    await requests.settled(subject, seq, hands);
    // Requests are erased before the other stores, whose contents are needed to find the requests in Redis.
    const streams = await requests.erase(subject, seq, hands);
    const report = { streams, ...lines, ...(await eraseStores(deps, subject, seq, hands)) };
    await jobs.addToReport(job, report);
    return { found: ended + totalOf(report), seq };
  }

  const run: RunKind = async (job, hands) => {
    const { tenantId, mode = 'live', entityId, reason } = job;
    const tenant = await tenants.find(tenantId);
    if (tenant === undefined) throw new Error(`Tenant ${tenantId} is not there`);
    // A copy on the other shard would survive, so the job is retried in a moment.
    if (tenant.move !== undefined) throw new Error(`Tenant ${tenantId} is being moved to another shard`);
    const subject = { ...overseenBy({ tenantId, mode }), shard: tenant.shard, entityId };
    let last = await pass(job, subject, 1, hands);
    for (let number = 2; number <= PASSES_MAX; number += 1) {
      last = await pass(job, subject, number, hands);
      if (last.found === 0) break;
    }
    await requests.unlist(subject, last.seq);
    if (tenant.closedAt !== undefined && entityId === undefined) await conversations.account(tenantId);
    // A closing leaves the erasure of a tenant to this job only while it has its place.
    await jobs.giveUpPlace(job);
    if ((await tenants.find(tenantId))?.closedAt !== tenant.closedAt) return run(job, hands);
    await hands.hold();
    await jobs.completeDeletion(job, reason === undefined ? undefined : hideIn(deps, subject, reason), clock.now());
  };
  return run;
}
