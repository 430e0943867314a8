import type { Request, Response, Router } from 'express';

import type { ComplianceKind } from '../../../shared/contracts/compliance.ts';
import { parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import type { Pseudonyms } from '../../../shared/domain/compliance/pseudonyms.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { ComplianceJobRepository } from '../../../shared/infra/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceJobRow } from '../../../shared/infra/mongo/compliance/compliance-job-repository.ts';
import type { ExportArchiveRepository } from '../../../shared/infra/mongo/compliance/export-archive-repository.ts';
import type { ComplianceQueue } from '../../../shared/infra/queue/compliance-queue.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import type { AuditTrail } from '../audit-log/audit-trail.ts';
import { principalOf } from '../../http/request-context.ts';
import type { EndpointHandler, ServeEndpoints } from '../../http/serve-endpoints.ts';
import { DRAIN_MS } from '../../relay/forward.ts';
import type { RelayTimes } from '../../relay/forward.ts';
import { pathId } from '../../contract/path-id.ts';
import { archiveOf, sendArchive } from './download.ts';
import { toDeletionResource, toExportResource } from './resource.ts';
import { parseNewDeletion, parseNewExport } from './schema.ts';
import type { Subject } from './schema.ts';

/** What exports and deletions need of the ingress, made in one place (api/resources/compliance/open-compliance.ts). */
export interface ComplianceParts {
  jobs: ComplianceJobRepository;
  archives: Pick<ExportArchiveRepository, 'read'>;
  queue: Pick<ComplianceQueue, 'add'>;
  pseudonyms: Pseudonyms;
}

export interface ComplianceRouteDeps {
  serve: ServeEndpoints;
  compliance: ComplianceParts;
  auditTrail: AuditTrail;
  relayTimes: RelayTimes;
  clock: Clock;
}

/** Each takes a worker's time and, for a week, room in the database. */
const OPEN_EXPORTS_MAX = 5;

const TO_RESOURCE = { export: toExportResource, deletion: toDeletionResource } as const;

/** `/compliance/exports` and `/compliance/deletions` (docs/spec/contract.md section 6). */
export function createComplianceRoute({
  serve,
  compliance,
  auditTrail,
  relayTimes,
  clock,
}: ComplianceRouteDeps): Router {
  const { jobs, archives, queue, pseudonyms } = compliance;

  function jobOf(res: Response, kind: ComplianceKind, { scope, entityId }: Subject): ComplianceJobRow {
    const now = clock.now();
    return {
      _id: newId(kind === 'export' ? 'exp' : 'del'),
      tenantId: principalOf(res).tenantId,
      kind,
      scope,
      ...(entityId === undefined ? {} : { entityId }),
      status: 'queued',
      claim: 0,
      claimedUntil: now,
      createdAt: now,
    };
  }

  async function accept(res: Response, job: ComplianceJobRow): Promise<void> {
    const { _id, tenantId, kind, scope, entityId, entityHash } = job;
    await jobs.insert(job);
    // The sweep finds it otherwise.
    await queue.add({ tenantId, jobId: _id }).catch(() => undefined);
    // A deletion must not leave the id of whom it deletes.
    const about = kind === 'export' ? { entity_id: entityId } : { entity_hash: entityHash };
    const named = entityId === undefined ? {} : about;
    await auditTrail.byKey(res, { action: `compliance.${kind}_requested`, target: _id, details: { scope, ...named } });
    res.setHeader('Location', `/platform/v1/compliance/${kind}s/${_id}`);
    res.status(202).json(TO_RESOURCE[kind](job));
  }

  async function find(req: Request, res: Response, kind: ComplianceKind): Promise<ComplianceJobRow> {
    const id = kind === 'export' ? pathId(req, 'exportId', 'exp') : pathId(req, 'deletionId', 'del');
    const job = await jobs.find(principalOf(res).tenantId, kind, id);
    if (job === undefined) throw new ServiceError('not_found', `There is no ${kind} with this id.`);
    return job;
  }

  const list =
    (kind: ComplianceKind): EndpointHandler =>
    async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await jobs.list(principalOf(res).tenantId, kind, query);
      res.json(toListPage<ComplianceJobRow, { id: string }>(rows, query.limit, TO_RESOURCE[kind]));
    };

  const get =
    (kind: ComplianceKind): EndpointHandler =>
    async (req, res) => {
      res.json(TO_RESOURCE[kind](await find(req, res, kind)));
    };

  return serve({
    createExport: async (req, res) => {
      const job = jobOf(res, 'export', parseNewExport(req.body));
      if ((await jobs.countOpen(job.tenantId, 'export')) >= OPEN_EXPORTS_MAX) {
        throw new ServiceError(
          'conflict',
          `The tenant has ${OPEN_EXPORTS_MAX} exports that are not complete; wait for one of them.`,
          { retryAfterSeconds: 10 },
        );
      }
      await accept(res, job);
    },
    listExports: list('export'),
    getExport: get('export'),

    downloadExport: async (req, res) => {
      const job = await find(req, res, 'export');
      const archive = archiveOf(job, clock.now());
      await auditTrail.byKey(res, { action: 'compliance.export_downloaded', target: job._id });
      await sendArchive(res, job, archive, { archives, drainMs: relayTimes.drainMs ?? DRAIN_MS });
    },

    createDeletion: async (req, res) => {
      const { reason, ...subject } = parseNewDeletion(req.body);
      const { tenantId } = principalOf(res);
      const { entityId } = subject;
      await accept(res, {
        ...jobOf(res, 'deletion', subject),
        ...(entityId === undefined ? {} : { entityHash: pseudonyms.of(tenantId, entityId) }),
        ...(reason === undefined ? {} : { reason }),
      });
    },
    listDeletions: list('deletion'),
    getDeletion: get('deletion'),
  });
}
