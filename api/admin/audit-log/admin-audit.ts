import type { Request, Response } from 'express';

import type {
  AdminAction,
  AdminAuditEntry,
  AdminAuditRepository,
  AdminOutcome,
} from '../../../shared/mongo/administration/admin-audit-repository.ts';
import { isRecord } from '../../../shared/contracts/parse.ts';
import type { Pseudonyms } from '../../../shared/domain/pseudonyms.ts';
import type { Logger } from '../../../shared/logging/logger.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { contextOf } from '../../http/request-context.ts';

/** Writes the operator's audit log (docs/spec.md#operators-audit-log). */
export type AdminAudit = ReturnType<typeof createAdminAudit>;

const SECRET_NAME = /(^|_)(key|secret|token|password)$/;
const HIDDEN = '[hidden]';

function withoutSecrets(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(withoutSecrets);
  if (!isRecord(body)) return body;
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      typeof value === 'string' && SECRET_NAME.test(name) ? HIDDEN : withoutSecrets(value),
    ]),
  );
}

/** No deletion reaches this log, so of a deletion or an export it keeps neither entity nor reason. */
function recorded(pseudonyms: Pseudonyms, tenantId: unknown, body: unknown): unknown {
  if (!isRecord(body) || body['scope'] === undefined) return withoutSecrets(body);
  const { scope, entity_id: entityId } = body;
  return { scope, ...(typeof entityId === 'string' ? { entity_hash: pseudonyms.of(String(tenantId), entityId) } : {}) };
}

const PATH_CHARACTERS_MAX = 512;

export interface AdminAuditDeps {
  adminAudit: AdminAuditRepository;
  compliance: { pseudonyms: Pseudonyms };
  clock: Clock;
  log: Logger;
}

export function createAdminAudit({ adminAudit, compliance, clock, log }: AdminAuditDeps) {
  function entryOf(req: Request, res: Response, action: AdminAction): AdminAuditEntry {
    const { requestId, administrator } = contextOf(res);
    const target = Object.values(req.params).at(-1);
    return {
      createdAt: clock.now(),
      ...(administrator === undefined ? {} : { actor: administrator.name, role: administrator.role }),
      action,
      method: req.method,
      path: `${req.baseUrl}${req.path}`.slice(0, PATH_CHARACTERS_MAX),
      ...(typeof target === 'string' ? { target } : {}),
      requestId,
      address: req.ip ?? 'unknown',
    };
  }

  return {
    /**
     * Writes a change's line before the change is made; rejects if it cannot, so that no change goes unrecorded. Until
     * the returned function records how the change ended, the line says that nobody knows. That function never rejects.
     */
    async begin(req: Request, res: Response, changes: unknown): Promise<(outcome: AdminOutcome) => Promise<void>> {
      const entry = entryOf(req, res, 'change');
      const kept = recorded(compliance.pseudonyms, req.params['tenantId'], changes);
      const changesJson = changes === undefined ? {} : { changesJson: JSON.stringify(kept) };
      const id = await adminAudit.append({ ...entry, ...changesJson });
      return async (outcome) => {
        await adminAudit.conclude(id, outcome).catch((error: unknown) => {
          log.error('The audit log does not say how a change ended.', { requestId: entry.requestId, error });
        });
      };
    },

    /** Records something that has already happened; never rejects. `actor` is the token's name, if it was a valid one. */
    async note(req: Request, res: Response, action: Exclude<AdminAction, 'change'>): Promise<void> {
      const entry = entryOf(req, res, action);
      await adminAudit.append(entry).catch((error: unknown) => {
        log.error(`The audit log of the administration lacks a line: ${action}.`, {
          requestId: entry.requestId,
          error,
        });
      });
    },
  };
}
