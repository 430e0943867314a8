import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { waitUntil } from '../../support/chat.ts';
import { filesOf, jobOf } from '../../support/compliance.ts';
import { QUESTION, replayLab } from '../../support/replay-lab.ts';
import type { TestTenant } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';

const ENTITY = 'pupil-7';

/** docs/spec.md#replay: what is kept of a failed request is the entity's. */
describe('a failed request that may be replayed', () => {
  const service = useService();
  const lab = replayLab(service);
  beforeAll(() => service.setProvider({ max_retries: 0 }));
  afterEach(() => {
    service.provider.restore();
    service.provider.reset();
  });

  const textsOf = (tenant: TestTenant) => service.models.requestIntents.countDocuments({ tenantId: tenant.tenantId });

  async function replayable(tenant: TestTenant): Promise<string> {
    const { id } = await lab.failed(tenant, { entity_id: ENTITY });
    expect((await lab.replay({ request_ids: [id], dry_run: true })).matched).toBe(1);
    return id;
  }

  it('is part of an export of its entity', async () => {
    const tenant = await service.startTenant();
    const id = await replayable(tenant);

    const files = await filesOf(service, tenant.key, { scope: 'entity', entity_id: ENTITY });

    expect(JSON.parse(String(files.get('failed_requests.jsonl')))).toMatchObject({
      ...{ request_id: id, entity_id: ENTITY, error_code: 'model_unavailable' },
      messages: [{ role: 'user', content: QUESTION }],
    });
  }, 60_000);

  it('is gone with a deletion of its entity, and never replayed', async () => {
    const tenant = await service.startTenant();
    const api = apiOf(service, tenant.key);
    const id = await replayable(tenant);

    const { body } = await api('post', '/compliance/deletions', { scope: 'entity', entity_id: ENTITY });
    const job = await jobOf(api, 'deletions', String(body.id));

    expect(job.status).toBe('completed');
    await waitUntil(async () => (await textsOf(tenant)) === 0, 'its text to be gone');
    expect(await lab.reasonOf(id)).toBe('not_replayable');
    expect(service.provider.stats().calls).toBe(0);
  }, 60_000);
});
