import { describe, expect, it } from '@jest/globals';

import type { FinishedNotice } from '../../../shared/contracts/finished-notice.ts';
import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { createNoticeStore } from '../../../shared/requests/outbox.ts';
import { createPublishNotices } from '../../../workers/webhooks/publish-events.ts';
import { FAILED, openRequestLab, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { useEach } from '../../support/use-service.ts';

describe('the notice of a request that failed', () => {
  const lab = useEach('lab', openRequestLab);

  function publisher(publish: (notices: readonly FinishedNotice[]) => Promise<void>) {
    const leases = createLeaderLease(lab.redis, lab.keyspace, 'process');
    return createPublishNotices({ notices: createNoticeStore(lab.redis, lab.keyspace), leases, publish });
  }

  function noticeOf({ requestId, principal }: LabRequest): FinishedNotice {
    const { tenantId, keyId, mode } = principal;
    return {
      ...{ requestId, tenantId, keyId, mode, tier: 'mobius', endpoint: 'chat', seq: 1, finishedAt: 1 },
      finishReason: 'error',
      usage: { promptTokens: 0, completionTokens: 0 },
      errorCode: 'timeout',
    };
  }

  async function fail(): Promise<LabRequest> {
    const request = await lab.admit();
    await lab.run(request, 1);
    await lab.requests.finish(request.ref(1), 0, { ...FAILED, notice: noticeOf(request) });
    return request;
  }

  it('outlives the worker that ended the request, and is removed once it is published', async () => {
    const request = await fail();
    const published: FinishedNotice[] = [];

    await expect(publisher(() => Promise.reject(new Error('MongoDB is away')))(SHARD)).rejects.toThrow('away');
    const publishNotices = publisher((notices) => {
      published.push(...notices);
      return Promise.resolve();
    });
    await publishNotices(SHARD);
    await publishNotices(SHARD);

    expect(published).toEqual([noticeOf(request)]);
    expect(await lab.redis.xlen(lab.keys.notices)).toBe(0);
  });

  it('is left once, although the end is sent twice', async () => {
    const request = await fail();
    await lab.requests.finish(request.ref(1), 0, { ...FAILED, notice: noticeOf(request) });

    expect(await lab.redis.xlen(lab.keys.notices)).toBe(1);
  });

  it('does not stand in the way of others when it cannot be read', async () => {
    await lab.redis.xadd(lab.keys.notices, '*', 'd', '{');
    const request = await fail();
    const published: string[] = [];

    await publisher((notices) => {
      published.push(...notices.map(({ requestId }) => requestId));
      return Promise.resolve();
    })(SHARD);

    expect(published).toEqual([request.requestId]);
    expect(await lab.redis.xlen(lab.keys.notices)).toBe(0);
  });
});
