import { afterEach, expect, it } from '@jest/globals';

import { itemsOf, ndjsonOf, NDJSON, postBatch } from '../../support/batch-client.ts';
import { call, ENDPOINT_NAMES, endpointRule, makeResources } from '../../support/endpoints.ts';
import { refusalOf } from '../../support/refusal.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService, useStarted } from '../../support/use-service.ts';
import { waitUntil } from '../../support/wait-for.ts';

const mongo = useStarted('mongo', () => openTcpProxy(mongoUri(`refusing${String(process.pid)}`)));

const service = useService(() => ({ env: { MONGODB_URI: mongo.url, PAYMENTS: 'test' } }));
afterEach(() => {
  mongo.failCommands(undefined);
});

const WRITES = ['insert', 'update', 'findAndModify', 'delete'];
const writers = ENDPOINT_NAMES.filter(
  (name) => endpointRule(name).method !== 'GET' && endpointRule(name).counts === 'request',
);

it.each([
  { code: 13, codeName: 'Unauthorized' },
  { code: 14_031, codeName: 'OutOfDiskSpace' },
  { code: 11_601, codeName: 'Interrupted' },
])('whatever writes is 503 where MongoDB may not write, and what reads works: $codeName', async (refusal) => {
  const owner = await service.startTenant();
  const values = await makeResources(service, owner);
  // The owner's own key is blocked by its revocation, which Redis hears of first.
  const reader = await makeKey(apiOf(service, owner.key));
  mongo.failCommands((command) => (WRITES.includes(command) ? refusal : undefined));

  const answer = async (name: (typeof writers)[number]) => {
    const response = await call(service, name, { key: owner.key, values });
    return { name, status: response.status, waits: response.headers['retry-after'] !== undefined };
  };
  const answers = await Promise.all(writers.filter((name) => name !== 'revokeKey').map(answer));
  // Last: whatever comes after it is refused for its key.
  answers.push(await answer('revokeKey'));

  // What has nothing to write answers as ever; nothing is the service's own fault.
  expect(answers.filter(({ status, waits }) => status >= 500 && !(status === 503 && waits))).toEqual([]);
  expect(answers.filter(({ status }) => status === 503).length).toBeGreaterThan(10);
  expect((await apiOf(service, reader.value)('get', '/keys')).status).toBe(200);
});

it.each([2, 450])(
  'an upload of %d lines is 503 and leaves no batch behind once MongoDB takes writes',
  async (count) => {
    const owner = await service.startTenant();
    const refusal = { code: 14_031, codeName: 'OutOfDiskSpace' };
    // The batch is stored, its lines are not, and it cannot be taken back at once.
    mongo.failCommands((command, text) =>
      ['insert', 'delete'].includes(command) && text.includes('batch_lines') ? refusal : undefined,
    );

    const response = await postBatch(service, owner.key, ndjsonOf(itemsOf(count)), { 'Content-Type': NDJSON });

    expect(refusalOf(response)).toMatchObject({ status: 503, code: 'model_unavailable' });
    const listed = async () => ((await apiOf(service, owner.key)('get', '/batches')).body as { data: unknown[] }).data;
    expect(await listed()).toHaveLength(1);
    mongo.failCommands(undefined);
    await waitUntil(async () => (await listed()).length === 0, 'the upload to be taken back');
  },
);
