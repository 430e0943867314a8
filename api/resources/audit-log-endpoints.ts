import { toListPage } from '../../shared/contracts/list-page.ts';
import { KEY_MODES, overseenBy } from '../../shared/contracts/space.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { derivedId } from '../../shared/lifecycle/ids.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { spaceFields } from '../../shared/mongo/collection.ts';
import type { AuditRepository, AuditRow } from '../../shared/mongo/tenants/audit-repository.ts';
import { defineEndpoint, exampleList, json, listQuery, ok } from '../contract/endpoint.ts';
import { field, kind, named, oneOf, pageSchema, resource, text, time, toSeconds } from '../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../contract/path-parameters.ts';
import { HAPPENS_ONCE, targetInLog } from '../contract/tenant-events.ts';
import type { TenantEventListener } from '../contract/tenant-events.ts';

export interface AuditLogDeps {
  audit: AuditRepository;
}

const entryResource = resource<[row: AuditRow]>('AuditLogEntry', {
  id: field(text(), 'aud_6tR8eW1qA3sD5fG7hJ9kL2zX', (row) => row._id),
  object: kind('audit_log.entry'),
  created_at: field(time('Time of the event'), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  actor: field(
    text('The id of the API key, `administrator`, or `payment`.'),
    PATH_PARAMETERS.keyId.example,
    (row) => row.actor,
  ),
  mode: field(oneOf(KEY_MODES, '`test`: a test key did it.'), 'live', (row) => row.mode ?? 'live'),
  action: field(text('What was done: `key.revoked`.'), 'key.rotated', (row) => row.action),
  target: field(text('The id of the resource.'), PATH_PARAMETERS.keyId.example, (row) => row.target),
  request_id: field(text('The request that did it.'), PATH_PARAMETERS.requestId.example, (row) => row.requestId),
  details: field(
    { type: 'object', description: 'Details for an auditor.' },
    { grace_seconds: 3_600 },
    (row) => row.details,
  ),
});

const listAuditLog = defineEndpoint({
  method: 'GET',
  path: '/compliance/audit_log',
  scopes: ['compliance'],
  tag: 'Compliance',
  summary: 'List audit events',
  description:
    'On keys, entities, credits, webhooks and the tenant. An entry is never changed or deleted. A live key sees what all keys have done, a test key what test keys have.',
  query: listQuery,
  answers: { 200: json('A page of entries.', named('AuditLogList', pageSchema(entryResource.schema))) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(entryResource.example) } },
  async handle({ principal, query }, { audit }: AuditLogDeps) {
    return ok(toListPage(await audit.list(overseenBy(principal), query), query.limit, entryResource.of));
  },
});

/** Actions in the tenant's account, and who took them (docs/spec.md#compliance). */
export const auditLogEndpoints = { listAuditLog };

export interface WriteAuditLogDeps {
  audit: Pick<AuditRepository, 'append'>;
  clock: Clock;
  log: Logger;
}

/**
 * Writes the events of a tenant's account into its audit log. Never rejects, because the event has already happened: an
 * entry that cannot be written goes to the operator's log instead.
 */
export function createWriteAuditLog({ audit, clock, log }: WriteAuditLogDeps): TenantEventListener {
  return async (event) => {
    const { type: action, by, target, details } = event;
    const { tenantId, id: actor, requestId } = by;
    const space = spaceFields(by);
    try {
      await audit.append({
        // An event that happens only once has a derived id, so no second entry is written for it.
        ...(HAPPENS_ONCE.has(action) ? { _id: derivedId('aud', tenantId, action, target) } : {}),
        ...space,
        createdAt: clock.now(),
        actor,
        action,
        target,
        requestId,
        details: { ...details },
      });
    } catch (error) {
      log.error(`The audit log lacks a line: ${action} of ${targetInLog(event)} by ${actor}.`, {
        requestId,
        tenantId,
        error,
      });
    }
  };
}
