import { randomBytes } from 'node:crypto';

import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import type { ExportManifest } from '../../../shared/contracts/compliance.ts';
import { createBatchLab } from '../../support/batch-lab.ts';
import { chatOf, ledgerOf, postChat } from '../../support/chat.ts';
import { jobOf } from '../../support/compliance.ts';
import { refusalOf } from '../../support/refusal.ts';
import { startService } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useApi, useService, useTenantPerTest } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import { linesOf, sha256Of, unzip } from '../../support/zip.ts';

const WORD = 'Quetzalcoatl';
const OTHER_WORD = 'Huitzilopochtli';
const service = useService({ env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
const tenant = useTenantPerTest(service);
const api = useApi(service, tenant);

const say = (key: string, entity_id: string, content: string) =>
  postChat(service.app, key, chatOf(content, { entity_id, metadata: { content } }));

async function ask(subject: object): Promise<string> {
  const { status, body, headers } = await api('post', '/compliance/exports', subject);
  expect(status).toBe(202);
  expect(headers['location']).toBe(`/platform/v1/compliance/exports/${String(body.id)}`);
  return String(body.id);
}

function download(id: string, method: 'get' | 'head' = 'get'): request.Test {
  return request(service.app)
    [method](`/platform/v1/compliance/exports/${id}/download`)
    .auth(tenant.key, { type: 'bearer' })
    .buffer(true)
    .parse((res, callback) => {
      const parts: Buffer[] = [];
      res.on('data', (part: Buffer) => parts.push(part));
      res.on('end', () => {
        const whole = Buffer.concat(parts);
        const isError = String(res.headers['content-type']).startsWith('application/json');
        callback(null, isError ? (JSON.parse(whole.toString()) as unknown) : whole);
      });
    });
}

/** A complete export's files; checks everything that is said of them. */
async function exported(subject: object): Promise<{ files: Map<string, Buffer>; manifest: ExportManifest }> {
  const id = await ask(subject);
  const job = await jobOf(api, 'exports', id);
  expect(job).toMatchObject({ status: 'completed', error: null });
  const { status, body, headers } = await download(id);
  const data = body as Buffer;
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'content-type': 'application/zip',
    'content-length': String(job['bytes']),
    'content-disposition': `attachment; filename="parley-${id}.zip"`,
    'cache-control': 'private, no-store',
  });
  expect(sha256Of(data)).toBe(job['sha256']);
  const files = await unzip(data);
  const manifest = JSON.parse(String(files.get('manifest.json'))) as ExportManifest;
  expect(manifest).toMatchObject({ id, object: 'compliance.export.manifest', tenant_id: tenant.tenantId });
  expect([...files.keys()]).toEqual([...manifest.files.map(({ name }) => name), 'manifest.json']);
  for (const { name, rows, bytes, sha256 } of manifest.files) {
    const content = files.get(name) ?? Buffer.alloc(0);
    expect([name, linesOf(content).length, content.length, sha256Of(content)]).toEqual([name, rows, bytes, sha256]);
  }
  expect(job['files']).toEqual(manifest.files);
  return { files, manifest };
}

const linesIn = (files: Map<string, Buffer>, name: string) => linesOf(files.get(`${name}.jsonl`) ?? Buffer.alloc(0));

describe('an export of the tenant', () => {
  it('has all of its data, nothing of another tenant and no secret', async () => {
    const other = await service.startTenant();
    await say(other.key, OTHER_WORD, OTHER_WORD);
    const webhook = await api('post', '/webhooks', { url: 'https://receiver.invalid/x', events: ['chat.completed'] });
    await api('put', '/entities/pupil', { name: WORD, metadata: { god: WORD } });
    await postChat(service.app, tenant.key, chatOf(WORD, { entity_id: 'pupil' })).set('Idempotency-Key', 'once');
    const lab = createBatchLab(service);
    await lab.until(await lab.submit(tenant, [WORD]), 'to end', ({ endedAt }) => endedAt !== undefined);
    await ledgerOf(service, await say(tenant.key, 'pupil', WORD));

    const { files, manifest } = await exported({ scope: 'tenant' });

    expect(manifest).toMatchObject({ scope: 'tenant', entity_id: null });
    const everything = [...files.values()].map(String).join('\n');
    const stored = await service.models.keys.findById(tenant.keyId).lean();
    const hook = await service.models.webhooks.findById(String(webhook.body.id)).lean();
    for (const secret of [tenant.key, stored?.hash, hook?.encryptedSecret, String(webhook.body.secret), OTHER_WORD])
      expect(everything).not.toContain(secret);
    expect(linesIn(files, 'entities')).toMatchObject([{ entity_id: 'pupil', name: WORD, metadata: { god: WORD } }]);
    expect(linesIn(files, 'messages').map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(linesIn(files, 'answers')).toMatchObject([
      { entity_id: 'pupil', status: 'completed', finish_reason: 'stop' },
    ]);
    expect(linesIn(files, 'batch_lines')).toMatchObject([{ state: 'completed', content: expect.any(String) }]);
    expect(
      linesIn(files, 'ledger')
        .map(({ type }) => type)
        .sort(),
    ).toEqual(['grant', 'usage', 'usage', 'usage']);
    expect(linesIn(files, 'keys')).toMatchObject([{ id: tenant.keyId, redacted_value: expect.any(String) }]);
    expect(linesIn(files, 'webhooks')).toMatchObject([{ id: webhook.body.id, url: 'https://receiver.invalid/x' }]);
    expect(linesIn(files, 'audit_log').map(({ action }) => action)).toContain('compliance.export_requested');
    for (const name of [
      'tenant',
      'account',
      'batches',
      'webhook_events',
      'webhook_deliveries',
      'usage',
      'compliance_jobs',
    ])
      expect([name, linesIn(files, name).length > 0]).toEqual([name, true]);
  }, 60_000);

  it('is whole when it is larger than one piece of the database', async () => {
    const noise = () => ({
      role: 'user' as const,
      content: randomBytes(12_000).toString('base64'),
      seq: 1,
      attempt: 1,
    });
    for (let count = 0; count < 5; count += 1) {
      const messages = Array.from({ length: 40 }, (_, index) => ({ ...noise(), requestId: `req_${index}` }));
      const row = { tenantId: tenant.tenantId, entityId: `pupil-${count}`, createdAt: count, messages };
      await service.models.entities.create(row);
    }

    const { files } = await exported({ scope: 'tenant' });

    expect(linesIn(files, 'messages')).toHaveLength(200);
    expect(await service.models.exportChunks.countDocuments({ tenantId: tenant.tenantId })).toBeGreaterThan(2);
  }, 60_000);
});

describe('an export of an entity', () => {
  it('an export of an entity has what is of the entity alone', async () => {
    await say(tenant.key, 'neighbour', OTHER_WORD);
    await ledgerOf(service, await say(tenant.key, 'pupil', WORD));

    const { files, manifest } = await exported({ scope: 'entity', entity_id: 'pupil' });

    expect(manifest).toMatchObject({ scope: 'entity', entity_id: 'pupil' });
    const everything = [...files.values()].map(String).join('\n');
    expect(everything).toContain(WORD);
    for (const foreign of [OTHER_WORD, 'neighbour', tenant.keyId.replace('key_', 'svc_')])
      expect(everything).not.toContain(foreign);
    expect(linesIn(files, 'ledger')).toMatchObject([{ type: 'usage', entity_id: 'pupil' }]);
    expect(linesIn(files, 'messages')).toHaveLength(2);
    expect(files.has('keys.jsonl')).toBe(false);
  });

  it('an export of an entity is empty where the entity is unknown', async () => {
    const { manifest } = await exported({ scope: 'entity', entity_id: 'nobody' });
    const { files } = manifest;
    expect(files.filter(({ rows }) => rows > 0).map(({ name }) => name)).toEqual([
      'audit_log.jsonl',
      'compliance_jobs.jsonl',
    ]);
  });
});

describe('the file of an export', () => {
  it('is 409 before it is complete, and 410 when its time is over', async () => {
    const idle = await startService({ workers: 0 });
    try {
      const owner = await idle.startTenant();
      const call = apiOf(idle, owner.key);
      const { body } = await call('post', '/compliance/exports', { scope: 'tenant' });
      const path = `/compliance/exports/${String(body.id)}/download`;

      expect(refusalOf(await call('get', path))).toMatchObject({ status: 409, code: 'conflict' });
      await idle.startWorker();
      await jobOf(call, 'exports', String(body.id));
      expect((await call('get', path)).status).toBe(200);
      await idle.models.complianceJobs.updateOne({ _id: body.id }, { $set: { 'archive.expiresAt': Date.now() - 1 } });
      expect(refusalOf(await call('get', path))).toMatchObject({ status: 410, code: 'gone' });
    } finally {
      await idle.close();
    }
  });

  it('is not downloaded by who asks for its head, and the audit log does not say so', async () => {
    const id = await ask({ scope: 'entity', entity_id: 'pupil-7' });
    const { bytes } = await jobOf(api, 'exports', id);

    const { status, headers } = await download(id, 'head');

    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'content-type': 'application/zip', 'content-length': String(bytes) });
    expect((await api('get', '/compliance/audit_log')).text).not.toContain('export_downloaded');
  });

  it('is made again when its worker died halfway, and nothing of the first attempt stays', async () => {
    const id = await ask({ scope: 'tenant' });
    await jobOf(api, 'exports', id);
    await service.models.complianceJobs.updateOne(
      { _id: id },
      { $set: { status: 'in_progress', claimedUntil: Date.now() - 1 }, $unset: { archive: 1, completedAt: 1 } },
    );

    const again = await jobOf(api, 'exports', id);

    expect(sha256Of((await download(id)).body as Buffer)).toBe(again['sha256']);
    const chunks = await service.models.exportChunks.find({ exportId: id }, { claim: 1 }).lean();
    expect(chunks.map(({ claim }) => claim)).toEqual([2]);
  });
});

describe('POST /compliance/exports', () => {
  it.each([
    [{}, 'scope'],
    [{ scope: 'all' }, 'scope'],
    [{ scope: 'entity' }, 'entity_id'],
    [{ scope: 'tenant', entity_id: 'pupil' }, 'entity_id'],
    [{ scope: 'entity', entity_id: '' }, 'entity_id'],
    [{ scope: 'entity', entity_id: 'x'.repeat(257) }, 'entity_id'],
    [{ scope: 'tenant', more: 1 }, 'more'],
  ])('POST /compliance/exports refuses %j', async (body, param) => {
    expect(refusalOf(await api('post', '/compliance/exports', body))).toMatchObject({
      status: 400,
      code: 'invalid_request',
      param,
    });
  });

  it('refuses a sixth export while five are not complete', async () => {
    for (let count = 0; count < 5; count += 1) {
      const { body } = await api('post', '/compliance/exports', { scope: 'tenant' });
      await service.models.complianceJobs.updateOne(
        { _id: body.id },
        { $set: { status: 'queued', claimedUntil: Date.now() + 3_600_000 } },
      );
    }

    expect(refusalOf(await api('post', '/compliance/exports', { scope: 'tenant' }))).toMatchObject({ status: 409 });
    await service.models.complianceJobs.deleteMany({ tenantId: tenant.tenantId });
  });

  it('tells the tenant’s receivers when the export is complete', async () => {
    const receiver = await startWebhookReceiver();
    await api('post', '/webhooks', { url: receiver.url, events: ['compliance.export.completed'] });

    const id = await ask({ scope: 'entity', entity_id: 'pupil' });

    const { body } = await receiver.next('compliance.export.completed');
    expect(body.data).toEqual({ id, scope: 'entity', entity_id: 'pupil' });
    await waitFor(async () => {
      const row = await service.models.complianceJobs.findById(id).lean();
      return row?.unpublished === undefined ? true : undefined;
    }, 'the event to be noted');
    await receiver.close();
  });
});

it('keeps the files of the latest five exports of the whole tenant, and those of entities beside them', async () => {
  const ofEntity = await ask({ scope: 'entity', entity_id: 'pupil-7' });
  await jobOf(api, 'exports', ofEntity);
  const ids: string[] = [];
  for (let count = 0; count < 6; count += 1) {
    const id = await ask({ scope: 'tenant' });
    await jobOf(api, 'exports', id);
    ids.push(id);
  }
  const [first = '', second = '', ...others] = ids;

  // A worker takes older files away once it has said that the latest is complete.
  const gone = await waitFor(async () => {
    const answer = await download(first);
    return answer.status === 410 ? answer : undefined;
  }, 'the end of the oldest file');

  expect(refusalOf(gone)).toMatchObject({ code: 'gone', message: expect.stringContaining('no longer kept') });
  expect((await download(second)).status).toBe(200);
  expect((await download(others.at(-1) ?? '')).status).toBe(200);
  expect((await download(ofEntity)).status).toBe(200);
  const chunksOf = (exportId: string) => service.models.exportChunks.countDocuments({ exportId });
  await waitFor(async () => (await chunksOf(first)) === 0 || undefined, 'the removal of its pieces');
  expect(await chunksOf(second)).toBeGreaterThan(0);
}, 60_000);
