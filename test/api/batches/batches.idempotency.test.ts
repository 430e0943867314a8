import { gzipSync } from 'node:zlib';

import { describe, expect, it } from '@jest/globals';

import { itemsOf, ndjsonOf, NDJSON, postBatch, postLines, storedOf } from '../../support/batch-client.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenantPerTest } from '../../support/use-service.ts';

/** More than is in memory at a time: a repeated upload is partly stored before it is known for what it is. */
const MANY = 1_000;
const KEY = { 'Idempotency-Key': 'nightly' };
const service = useService({ workers: 0 });
const tenant = useTenantPerTest(service);

describe('POST /batches with an Idempotency-Key', () => {
  it.each([1, MANY])('makes one batch, and answers with it again: %d lines', async (count) => {
    const first = await postLines(service, tenant.key, itemsOf(count), KEY);

    const second = await postLines(service, tenant.key, itemsOf(count), KEY);

    expect([first.status, second.status]).toEqual([202, 202]);
    expect(second.body).toEqual(first.body);
    expect(second.headers['location']).toBe(first.headers['location']);
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(await storedOf(service, tenant)).toEqual([1, count]);
    expect((await apiOf(service, tenant.key)('get', '/batches')).body.data).toHaveLength(1);
  });

  it('knows the same lines when they come compressed', async () => {
    await postLines(service, tenant.key, itemsOf(3), KEY);
    const packed = gzipSync(ndjsonOf(itemsOf(3)));
    const headers = { ...KEY, 'Content-Type': NDJSON, 'Content-Encoding': 'gzip' };

    const response = await postBatch(service, tenant.key, packed, headers);

    expect([response.status, response.headers['idempotent-replayed']]).toEqual([202, 'true']);
  });

  it.each([1, MANY])('is 422 with another body, of which nothing stays: %d lines', async (count) => {
    await postLines(service, tenant.key, itemsOf(2), KEY);

    expect(refusalOf(await postLines(service, tenant.key, itemsOf(count), KEY))).toMatchObject({
      status: 422,
      code: 'idempotency_mismatch',
    });
    expect(await storedOf(service, tenant)).toEqual([1, 2]);
  });

  it('is 409 while the first one runs on, and nothing stays', async () => {
    await postLines(service, tenant.key, itemsOf(MANY), KEY);
    // As if the first call had not ended yet.
    await service.models.idempotency.updateMany(
      { tenantId: tenant.tenantId },
      { $unset: { status: 1 }, $set: { claimedAt: Date.now() } },
    );

    expect(refusalOf(await postLines(service, tenant.key, itemsOf(MANY), KEY))).toMatchObject({
      status: 409,
      code: 'conflict',
      retryAfter: 1,
    });
    expect(await storedOf(service, tenant)).toEqual([1, MANY]);
  });

  it('makes one batch of many calls at the same time', async () => {
    const calls = Array.from({ length: 4 }, () => postLines(service, tenant.key, itemsOf(MANY), KEY));

    const responses = await Promise.all(calls);

    expect(responses.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
    expect(new Set(responses.map(({ body }) => String(body.id))).size).toBe(1);
    expect(await storedOf(service, tenant)).toEqual([1, MANY]);
  });

  it('does not remember a batch that was refused', async () => {
    const twice = [...itemsOf(2), ...itemsOf(1)];
    expect(refusalOf(await postLines(service, tenant.key, twice, KEY)).status).toBe(400);

    const response = await postLines(service, tenant.key, itemsOf(2), KEY);

    expect([response.status, response.headers['idempotent-replayed']]).toEqual([202, undefined]);
  });

  it('POST /batches with an Idempotency-Key runs without one each time', async () => {
    await postLines(service, tenant.key, itemsOf(2));
    await postLines(service, tenant.key, itemsOf(2));

    expect(await storedOf(service, tenant)).toEqual([2, 4]);
  });
});
