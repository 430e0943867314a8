import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { gzipSync } from 'node:zlib';

import { describe, expect, it } from '@jest/globals';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { CHAT_LIMITS } from '../../../shared/contracts/chat-request.ts';
import { createBatchQueue } from '../../../shared/requests/queue-store.ts';
import {
  itemOf,
  itemsOf,
  ndjsonOf,
  NDJSON,
  openPost,
  postBatch,
  postLines,
  storedOf,
} from '../../support/batch-client.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService, useTenantPerTest } from '../../support/use-service.ts';

const service = useService();
const tenant = useTenantPerTest(service);

const secondKey = async () => (await makeKey(apiOf(service, tenant.key))).value;

/** An upload whose body the ingress has asked for, and reads. */
async function openUpload(key: string) {
  const call = openPost(service, key);
  call.setHeader('Expect', '100-continue');
  const answered = once(call, 'response') as Promise<[IncomingMessage]>;
  const asked = once(call, 'continue');
  call.flushHeaders();
  await Promise.race([asked, answered]);
  return {
    async end(): Promise<number | undefined> {
      call.end(ndjsonOf(itemsOf(2)));
      const [answer] = await answered;
      answer.resume();
      return answer.statusCode;
    },
  };
}

describe('the uploads of a tenant', () => {
  it('have four places on an ingress, whatever keys they come by, and other tenants have theirs', async () => {
    const [second, other] = [await secondKey(), await service.startTenant()];
    const uploads = [];
    for (const key of [tenant.key, second, tenant.key, second]) uploads.push(await openUpload(key));

    const refused = refusalOf(await postLines(service, tenant.key, itemsOf(1)));

    expect(refused).toMatchObject({ status: 503, code: 'model_unavailable' });
    expect(refused.retryAfter).toBeGreaterThan(0);
    expect((await postLines(service, other.key, itemsOf(1))).status).toBe(202);
    expect((await postChat(service.app, other.key, chatOf('Hi'))).status).toBe(200);
    for (const upload of uploads) expect(await upload.end()).toBe(202);
    expect((await postLines(service, second, itemsOf(1))).status).toBe(202);
  });

  it('are ten a minute, whatever keys they come by', async () => {
    const second = await secondKey();
    for (let sent = 0; sent < BATCH_LIMITS.perMinute; sent += 1)
      expect((await postLines(service, tenant.key, [])).status).toBe(400);

    const refused = refusalOf(await postLines(service, second, itemsOf(1)));

    expect(refused).toMatchObject({ status: 429, code: 'rpm_exceeded' });
    expect(refused.message).toContain('tenant');
  });

  it('write a bounded number of bytes a minute, those of refused ones included', async () => {
    const text = 'x'.repeat(CHAT_LIMITS.contentMax);
    const large = Array.from({ length: 31 }, (_, index) =>
      itemOf(`line-${index}`, { messages: Array(100).fill({ role: 'user', content: text }) }),
    );
    const body = gzipSync(ndjsonOf([...large, itemOf('line-0')]));
    const send = (key: string) =>
      postBatch(service, key, body, { 'Content-Type': NDJSON, 'Content-Encoding': 'gzip' }).then(refusalOf);
    const { takeWriting } = createBatchQueue(service.redis, service.keyspace);
    const taken = async () => Number(await service.redis.get(service.keyspace.shard(0).writing(tenant.tenantId)));
    // Half of the minute is left, so nothing is made up before the upload has ended.
    await takeWriting(0, tenant.tenantId, 30_000);
    const before = await taken();
    expect((await send(tenant.key)).status).toBe(400);
    expect((await taken()) - before).toBeGreaterThan(10_000);

    await takeWriting(0, tenant.tenantId, 60_000);
    const refused = await send(tenant.key);

    expect(refused).toMatchObject({ status: 429, code: 'rpm_exceeded' });
    expect(refused.retryAfter).toBeGreaterThan(0);
    const second = await secondKey();
    expect(refusalOf(await postLines(service, second, itemsOf(1)))).toMatchObject({ status: 429 });
    expect(await storedOf(service, tenant)).toEqual([0, 0]);
  }, 120_000);
});
