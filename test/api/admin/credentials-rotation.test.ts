import { createCipheriv, randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { readPseudonymKey } from '../../../shared/mongo/administration/service-secrets.ts';
import { createCredentialCipher } from '../../../shared/mongo/credentials.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';
import { startService } from '../../support/service.ts';
import type { TestService } from '../../support/service.ts';
import { mongoUri, uniqueName } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';

const [OLD, NEW] = [Buffer.alloc(32, 11), Buffer.alloc(32, 12)];
const [oldId] = createCredentialCipher(OLD).keyIds;
const [newId] = createCredentialCipher(NEW).keyIds;
const SECRET = 'sk-canary-0123456789abcdef';
const ANSWER = JSON.stringify({
  choices: [{ message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});

/** As versions without key ids have written it. */
function encryptAsBefore(plain: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', OLD, iv);
  const data = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), data]).toString('base64');
}

const database = uniqueName('rotation');
let server: ScriptedServer;
const services: TestService[] = [];

/** An ingress and a worker of one step of the rotation, over one database. */
async function start(current: Buffer, ...others: Buffer[]): Promise<TestService> {
  const CREDENTIALS_KEYS = others.map((key) => key.toString('base64')).join(',');
  const env = {
    MONGODB_URI: mongoUri(database),
    CREDENTIALS_KEY: current.toString('base64'),
    CREDENTIALS_KEYS,
    WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const service = await startService({ env, workers: 0 });
  services.push(service);
  await service.setTargets('mobius', [{ provider: 'scripted', model: 'm' }]);
  await service.startWorker();
  return service;
}

/** The keys that the provider has been called with since the last call. */
function keysSent(): Set<unknown> {
  return new Set(server.requests.splice(0).map(({ headers }) => headers.authorization));
}

async function chatWith(service: TestService): Promise<number> {
  const { key } = await service.startTenant();
  return (await postChat(service.app, key, chatOf('Hi', { model: 'mobius' }))).status;
}

beforeAll(async () => {
  server = await startScriptedServer();
  server.answer((res) => res.writeHead(200, { 'Content-Type': 'application/json' }).end(ANSWER));
});
afterAll(async () => {
  for (const service of services) await service.close();
  await server.close();
});

describe('CREDENTIALS_KEY', () => {
  it('is rotated while everything runs, and the old one is not needed afterwards', async () => {
    const settings = { kind: 'openai', base_url: `${server.url}/v1`, api_key: SECRET, max_retries: 0 };
    const first = await startService({
      env: { MONGODB_URI: mongoUri(database), CREDENTIALS_KEY: OLD.toString('base64') },
      workers: 0,
    });
    services.push(first);
    await first.setProvider(settings, 'scripted');
    const { key } = await first.startTenant();
    const hook = { url: 'https://receiver.invalid/hook', events: ['key.created'] };
    const made = await apiOf(first, key)('post', '/webhooks', hook);
    await apiOf(first, key)('post', `/webhooks/${String(made.body.id)}/rotate_secret`, { grace_seconds: 3_600 });
    await first.models.providers.create({
      ...(await first.models.providers.findById('scripted').lean()),
      _id: 'from-before',
      encryptedApiKey: encryptAsBefore(SECRET),
    });

    // Step 1: the old key encrypts, the new one can be read. Step 2: the other way round. Both at the same time.
    const [before, after] = [await start(OLD, NEW), await start(NEW, OLD)];
    const over = new AbortController();
    const statuses: number[] = [];
    const traffic = (async () => {
      while (!over.signal.aborted) statuses.push(await chatWith(before), await chatWith(after));
    })();
    const rotation = await after.admin('post', '/credentials/rotate');
    over.abort();
    await traffic;
    statuses.push(await chatWith(before), await chatWith(after));

    expect(rotation.body).toEqual({ object: 'credentials.rotation', rotated: 4, remaining: 0, unreadable: [] });
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect((await after.admin('get', '/credentials')).body).toEqual({
      object: 'credentials',
      keys: [
        { id: newId, current: true, rows: 4 },
        { id: oldId, current: false, rows: 0 },
      ],
      others: 0,
    });

    // Step 4: the old key is gone.
    const last = await start(NEW);
    expect(await chatWith(last)).toBe(200);
    expect(keysSent()).toEqual(new Set([`Bearer ${SECRET}`]));
    const cipher = createCredentialCipher(NEW);
    const webhook = await last.models.webhooks.findById(made.body.id).lean();
    const secrets = [webhook?.encryptedSecret ?? '', ...(webhook?.previousSecrets ?? []).map((one) => one.encrypted)];
    const place = `webhooks/${String(made.body.id)}`;
    expect(secrets.map((one) => cipher.decrypt(one, place))).toEqual([
      expect.stringMatching(/^whsec_/),
      made.body.secret,
    ]);
  }, 60_000);

  it('leaves the names of erased entities as they are', async () => {
    const [service] = services;
    if (service === undefined) throw new Error('The test before has started none.');

    expect(await readPseudonymKey(service.mongo, createCredentialCipher(NEW), NEW)).toEqual(OLD);
  });

  it('tells which rows no key decrypts, and goes on with the others', async () => {
    const [service] = services.slice(-1);
    if (service === undefined) throw new Error('The test before has started none.');
    await service.models.providers.updateOne(
      { _id: 'from-before' },
      { $set: { encryptedApiKey: createCredentialCipher(Buffer.alloc(32, 99)).encrypt('x', 'providers/from-before') } },
    );

    const { body } = await service.admin('post', '/credentials/rotate');

    expect(body).toMatchObject({ remaining: 1, unreadable: ['from-before'] });
    expect((await service.admin('get', '/credentials')).body).toMatchObject({ others: 1 });
  });
});
