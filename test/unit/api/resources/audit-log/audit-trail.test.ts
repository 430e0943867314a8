import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';

import { createAuditTrail } from '../../../../../api/resources/audit-log/audit-trail.ts';
import { assignRequestId } from '../../../../../api/http/request-context.ts';
import type { AuditEntry } from '../../../../../shared/infra/mongo/tenants/audit-repository.ts';
import { createRecordingLog } from '../../../../support/recording-log.ts';

const clock = { now: () => 1_000 };

/** A response that has its request id, and nothing else. */
function newResponse(): Response {
  const res = { setHeader: () => undefined } as unknown as Response;
  assignRequestId({} as Request, res, () => undefined);
  return res;
}

describe('the audit trail', () => {
  it('notes who has done what, when and in which request', async () => {
    const entries: AuditEntry[] = [];
    const audit = { append: (entry: AuditEntry) => Promise.resolve(void entries.push(entry)) };
    const trail = createAuditTrail({ audit, clock, log: createRecordingLog() });

    await trail.byAdministrator(newResponse(), 'ten_1', { action: 'tenant.suspended', target: 'ten_1' });

    expect(entries).toEqual([
      {
        tenantId: 'ten_1',
        createdAt: 1_000,
        actor: 'administrator',
        action: 'tenant.suspended',
        target: 'ten_1',
        requestId: expect.stringMatching(/^req_/),
        details: {},
      },
    ]);
  });

  it('does not undo what is done when a line cannot be written: the operator hears of it', async () => {
    const log = createRecordingLog();
    const audit = { append: () => Promise.reject(new Error('away')) };
    const trail = createAuditTrail({ audit, clock, log });

    await trail.byAdministrator(newResponse(), 'ten_1', { action: 'tenant.suspended', target: 'ten_1' });

    expect(JSON.stringify(log.lines)).toContain('tenant.suspended of ten_1 by administrator');
  });
});
