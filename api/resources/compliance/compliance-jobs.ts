import type { Response } from 'express';
import Joi from 'joi';

import { entityIdSchema } from '../../../shared/contracts/chat-request.ts';
import type { ComplianceKind, ComplianceScope } from '../../../shared/contracts/compliance.ts';
import type { Space } from '../../../shared/contracts/space.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { createComplianceJobRepository, OPEN_MAX } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceJobRow } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import { createExportArchiveRepository } from '../../../shared/mongo/compliance/export-archive-repository.ts';
import { spaceFields } from '../../../shared/mongo/collection.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { RawKeyCall } from '../../contract/endpoint.ts';
import { found } from '../../contract/path-parameters.ts';
import type { Actor, TenantEvents } from '../../contract/tenant-events.ts';
import { createdBefore, idForNew } from '../../http/request-context.ts';
import type { RelayTimes } from '../../relay/answer.ts';
import type { ReaderPlaces } from '../../relay/reader-places.ts';
import { createComplianceQueue } from '../../../shared/queue/queues.ts';
import type { ProcessParts } from '../../../shared/process-parts.ts';

type ComplianceParts = ReturnType<typeof openCompliance>;

export interface ComplianceDeps {
  compliance: ComplianceParts;
  events: TenantEvents;
  readerPlaces: ReaderPlaces;
  relayTimes: RelayTimes;
  clock: Clock;
}

export interface SubjectBody {
  scope: ComplianceScope;
  entity_id?: string;
}

export const subjectFields = {
  scope: Joi.string().valid('tenant', 'entity').required().description('One entity, or all of the tenant.'),
  entity_id: entityIdSchema.description('With scope `entity`, and only then.'),
};

/** Throws `invalid_request`. */
function entityOf({ scope, entity_id: entityId }: SubjectBody): string | undefined {
  if (scope === 'entity' && entityId === undefined) {
    throw new ServiceError('invalid_request', '`entity_id` is required with scope entity.', { param: 'entity_id' });
  }
  if (scope === 'tenant' && entityId !== undefined) {
    throw new ServiceError('invalid_request', '`entity_id` must be left out with scope tenant.', {
      param: 'entity_id',
    });
  }
  return entityId;
}

/** A new job, not stored yet. Throws `invalid_request`. */
export function newJob(
  kind: ComplianceKind,
  body: SubjectBody,
  { res, principal }: { res: Response; principal: Space },
  now: number,
): ComplianceJobRow {
  const entityId = entityOf(body);
  return {
    _id: idForNew(res, kind === 'export' ? 'exp' : 'del'),
    ...spaceFields(principal),
    kind,
    scope: body.scope,
    ...(entityId === undefined ? {} : { entityId }),
    status: 'queued',
    claim: 0,
    claimedUntil: now,
    createdAt: now,
  };
}

/** The job, if an earlier run under the same `Idempotency-Key` has stored it. */
export async function startedBefore(
  { compliance }: ComplianceDeps,
  { res, principal }: Pick<RawKeyCall, 'res' | 'principal'>,
  { kind, _id }: ComplianceJobRow,
): Promise<ComplianceJobRow | undefined> {
  return createdBefore(res, () => compliance.jobs.find(principal, kind, _id));
}

/** Only one deletion of all conversations may be open (docs/spec.md#compliance). */
async function wholeTenantConflict({ jobs }: ComplianceParts, space: Space): Promise<ServiceError> {
  const open = await jobs.listOpen(space, 'deletion');
  const first = open.find(({ scope }) => scope === 'tenant');
  const which =
    first === undefined ? 'A deletion of the whole tenant' : `The deletion ${first._id} of the whole tenant`;
  return new ServiceError('conflict', `${which} is not complete; wait for it, then ask again if you still need to.`);
}

/** Each job takes a worker's time, and an export takes room in the database for a week. */
function tooMany(kind: ComplianceKind): ServiceError {
  const what = kind === 'export' ? 'exports' : 'deletions of entities';
  return new ServiceError(
    'conflict',
    `The tenant has ${OPEN_MAX[kind]} ${what} that are not complete; wait for one of them.`,
    { retryAfterSeconds: 10 },
  );
}

/** Stores a job, unless an earlier run has, and queues it. Throws `conflict`. */
export async function startJob(
  { compliance, events }: ComplianceDeps,
  job: ComplianceJobRow,
  before: ComplianceJobRow | undefined,
  actor: Actor,
): Promise<void> {
  const { _id: jobId, tenantId, mode = 'live', kind, scope, entityId, entityHash } = job;
  if (before === undefined && !(await compliance.jobs.insert(job))) {
    throw kind === 'deletion' && scope === 'tenant'
      ? await wholeTenantConflict(compliance, { tenantId, mode })
      : tooMany(kind);
  }
  // If this fails, the sweep finds the stored job.
  await compliance.queue.add({ tenantId, jobId }).catch(() => undefined);
  // The audit entry of a deletion must not keep the id of the deleted entity.
  const about = kind === 'export' ? { entity_id: entityId } : { entity_hash: entityHash };
  const named = entityId === undefined ? {} : about;
  await events.emit(actor, `compliance.${kind}_requested`, jobId, { scope, ...named });
}

/** Throws `not_found`. */
export async function findJob(
  { compliance }: ComplianceDeps,
  principal: Principal,
  kind: ComplianceKind,
  jobId: string,
): Promise<ComplianceJobRow> {
  const job = await compliance.jobs.find(principal, kind, jobId);
  return found(job, kind === 'export' ? 'exportId' : 'deletionId');
}

/** The ingress's part of exports and deletions; workers carry them out. */
export function openCompliance({ mongo, redis, keyspace, pseudonyms, closer, log }: ProcessParts) {
  const queue = createComplianceQueue(redis, keyspace, (error) => {
    log.warn('The queue of exports and deletions reported an error.', { error });
  });
  closer.defer('compliance queue', () => queue.close());
  return {
    jobs: createComplianceJobRepository(mongo),
    archives: createExportArchiveRepository(mongo),
    queue,
    pseudonyms,
  };
}
