import { describe, expect, it } from '@jest/globals';

import { createWriteAuditLog } from '../../../../api/resources/audit-log-endpoints.ts';
import { createTenantEvents } from '../../../../api/contract/tenant-events.ts';
import type { TenantEvent } from '../../../../api/contract/tenant-events.ts';
import type { AuditEntry } from '../../../../shared/mongo/tenants/audit-repository.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

const clock = { now: () => 1_000 };

const SUSPENDED: TenantEvent = {
  type: 'tenant.suspended',
  by: { tenantId: 'ten_1', mode: 'live', id: 'administrator', requestId: 'req_1' },
  target: 'ten_1',
  details: { fields: [] },
};

describe('the audit log', () => {
  it('has who has done what, when and in which request', async () => {
    const entries: AuditEntry[] = [];
    const audit = { append: (entry: AuditEntry) => Promise.resolve(void entries.push(entry)) };

    await createWriteAuditLog({ audit, clock, log: createRecordingLog() })(SUSPENDED);

    expect(entries).toEqual([
      {
        tenantId: 'ten_1',
        createdAt: 1_000,
        actor: 'administrator',
        action: 'tenant.suspended',
        target: 'ten_1',
        requestId: 'req_1',
        details: { fields: [] },
      },
    ]);
  });

  it('does not undo what is done when a line cannot be written: the operator hears of it', async () => {
    const log = createRecordingLog();
    const audit = { append: () => Promise.reject(new Error('away')) };

    await createWriteAuditLog({ audit, clock, log })(SUSPENDED);

    expect(JSON.stringify(log.lines)).toContain('tenant.suspended of ten_1 by administrator');
  });

  it('names no entity in a log, which outlives the deletion of the entity', async () => {
    const log = createRecordingLog();
    const audit = { append: () => Promise.reject(new Error('away')) };
    const by = { tenantId: 'ten_1', mode: 'live', id: 'key_1', requestId: 'req_1' } as const;
    const lost = createTenantEvents(
      [createWriteAuditLog({ audit, clock, log }), () => Promise.reject(new Error('away'))],
      log,
    );

    await lost.emit(by, 'entity.deleted', 'mia.miller');
    await lost.emit(by, 'entity.history_deleted', 'mia.miller');

    expect(log.lines).toHaveLength(4);
    expect(JSON.stringify(log.lines)).not.toContain('mia');
  });
});
