import { setTimeout as pause } from 'node:timers/promises';

import type { DeletionReport } from '../../shared/contracts/compliance.ts';
import { overseenBy } from '../../shared/contracts/space.ts';
import { hideName } from '../../shared/domain/compliance/pseudonyms.ts';
import type { Pseudonyms } from '../../shared/domain/compliance/pseudonyms.ts';
import type {
  ComplianceJobRepository,
  ComplianceJobRow,
} from '../../shared/infra/mongo/compliance/compliance-job-repository.ts';
import type { ConversationEraser } from '../../shared/infra/mongo/compliance/conversation-eraser.ts';
import type { CopyEraser } from '../../shared/infra/mongo/compliance/copy-eraser.ts';
import type { ErasureRepository } from '../../shared/infra/mongo/compliance/erasure-repository.ts';
import type { RecordEraser } from '../../shared/infra/mongo/compliance/record-eraser.ts';
import type { TenantRepository } from '../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AcceptanceClock } from '../../shared/infra/redis/requests/request-eraser.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { DeletedSubject, EraseRequests } from './erase-requests.ts';
import type { JobHands, RunKind } from './run-job.ts';

export interface RunDeletionDeps {
  jobs: Pick<ComplianceJobRepository, 'completeDeletion' | 'addToReport'>;
  tenants: Pick<TenantRepository, 'find'>;
  erasures: Pick<ErasureRepository, 'mark'>;
  requests: EraseRequests;
  conversations: ConversationEraser;
  copies: CopyEraser;
  records: RecordEraser;
  pseudonyms: Pseudonyms;
  acceptanceClock: AcceptanceClock;
  clock: Clock;
  /** How long whoever is writing something has for it, milliseconds. */
  quietMs: number;
}

/** Who talks on with an entity while it is deleted does not keep the deletion from its end. */
const PASSES_MAX = 5;

function totalOf(report: DeletionReport): number {
  return Object.values(report).reduce((sum, count) => sum + count, 0);
}

/**
 * Deletes an entity, or all conversations of a tenant; one that a test key has asked for takes test data only, any other
 * one both: it may be asked for by law. It goes through all stores again and again until there is
 * nothing left: what was being written while it went by is found by the next pass. A mark that is set before each pass
 * keeps requests that were accepted earlier from storing anything later.
 */
export function createRunDeletion(deps: RunDeletionDeps): RunKind {
  const { jobs, tenants, erasures, requests, conversations, copies, records, pseudonyms, clock, quietMs } = deps;

  /** The text without the entity's id. */
  function hideIn(subject: DeletedSubject, text: string): string {
    const { tenantId, entityId } = subject;
    return entityId === undefined ? text : hideName(text, entityId, pseudonyms.of(tenantId, entityId));
  }

  async function eraseStores(subject: DeletedSubject, hands: JobHands): Promise<DeletionReport> {
    const steps = [
      () => conversations.answers(subject),
      () => conversations.entities(subject),
      () => copies.idempotency(subject, (text) => hideIn(subject, text)),
      () => copies.webhooks(subject),
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

  /** Returns how much it has found. */
  async function pass(job: ComplianceJobRow, subject: DeletedSubject, isFirst: boolean, hands: JobHands) {
    const { tenantId, shard, entityId } = subject;
    const seq = await deps.acceptanceClock.read(shard);
    const pseudonym = entityId === undefined ? undefined : pseudonyms.of(tenantId, entityId);
    await erasures.mark(subject, pseudonym, { seq, now: clock.now() });
    // First, or a batch would send what is ended once more.
    const lines = await conversations.batches(subject, pseudonyms);
    const ended = await requests.end(subject, seq, hands);
    await jobs.addToReport(job, { queued_jobs: ended });
    // Whoever waits for an ended request hears of its end; whoever ended it writes what follows.
    if (ended > 0 || !isFirst) await pause(quietMs, undefined, { signal: hands.signal });
    await requests.settled(subject, seq, hands);
    // Before the stores, which name requests that Redis has, too.
    const streams = await requests.erase(subject, seq, hands);
    const report = { streams, ...lines, ...(await eraseStores(subject, hands)) };
    await jobs.addToReport(job, report);
    return { found: ended + totalOf(report), seq };
  }

  return async (job, hands) => {
    const { tenantId, mode = 'live', entityId, reason } = job;
    const tenant = await tenants.find(tenantId);
    if (tenant === undefined) throw new Error(`Tenant ${tenantId} is not there`);
    // What is erased on one shard would stand on the other; the next run is a moment later.
    if (tenant.move !== undefined) throw new Error(`Tenant ${tenantId} is being moved to another shard`);
    const subject = { ...overseenBy({ tenantId, mode }), shard: tenant.shard, entityId };
    let last = await pass(job, subject, true, hands);
    for (let count = 2; count <= PASSES_MAX; count += 1) {
      last = await pass(job, subject, false, hands);
      if (last.found === 0) break;
    }
    await requests.unlist(subject, last.seq);
    await hands.hold();
    await jobs.completeDeletion(job, reason === undefined ? undefined : hideIn(subject, reason), clock.now());
  };
}
