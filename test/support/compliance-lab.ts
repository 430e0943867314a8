import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { createPseudonyms } from '../../shared/domain/pseudonyms.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { createBatchLab } from './batch-lab.ts';
import type { BatchLab } from './batch-lab.ts';
import { chatOf, ledgerOf, postChat, postStream, waitFor } from './chat.ts';
import { jobOf } from './compliance.ts';
import type { ComplianceResource } from './compliance.ts';
import { startService } from './service.ts';
import type { ServiceOptions, TestService, TestTenant } from './service.ts';
import { apiOf } from './tenant-api.ts';
import type { CallApi } from './tenant-api.ts';
import { useStarted } from './use-service.ts';
import { startWebhookReceiver } from './webhook-receiver.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

type Deletion = ComplianceResource & { entity_hash: string; report: Record<string, number> };

/** A tenant with an entity whose id is nowhere else, and a word that stands in whatever it says and is told. */
export interface DeletionCase {
  tenant: TestTenant;
  api: CallApi;
  entity: string;
  word: string;
  pseudonym: string;
  receiver: WebhookReceiver;
  said(more?: object): object;
  subscribe(): Promise<void>;
  /** A request that runs until it is cancelled. */
  beginEndless(more?: object): Promise<string>;
  /** Leaves traces by everything that the service can do; one request and one line of a batch still run. */
  leaveTraces(): Promise<void>;
  delete(subject: object, headers?: Record<string, string>): Promise<Deletion>;
}

/** Settings of startService: what `oloid` is asked never ends by itself, and `mobius` repeats what it is asked. */
async function startDeletionService(options: ServiceOptions = {}): Promise<TestService> {
  const env = { WEBHOOK_ALLOW_PRIVATE: 'true', ...options.env };
  const service = await startService({ ...options, env, workers: 0 });
  const target = (model: string) => [{ provider: 'simulated', model, context_window: 128_000 }];
  await service.setTargets('mobius', target('sim?echo=true&chunks=1'));
  await service.setTargets('oloid', target('sim?first_token_ms=600000'));
  await service.startWorker();
  return service;
}

/** As useService. */
export function useDeletionService(options: ServiceOptions = {}): TestService {
  return useStarted('service', () => startDeletionService(options));
}

/** What a request owes that was accepted at a time. */
export function settlementOf({ tenantId, keyId }: TestTenant, entityId: string, acceptedAt: number): SettlementRecord {
  return {
    requestId: newId('req'),
    tenantId,
    keyId,
    entityId,
    acceptedAt,
    finishedAt: acceptedAt,
    mode: 'live',
    tier: 'mobius',
    endpoint: 'chat',
    provider: 'simulated',
    model: 'sim',
    finishReason: 'stop',
    promptTokens: 1,
    completionTokens: 1,
    estimated: false,
    costMicro: 2,
  };
}

let cases = 0;

/** `given`: whose key acts, that of a new tenant by default. */
export async function openDeletionCase(service: TestService, given?: TestTenant): Promise<DeletionCase> {
  cases += 1;
  const letters = String.fromCharCode(96 + cases);
  const [entity, word] = [`pupil/${letters}-zanzibar 42`, `Quetzalcoatl-${letters}`];
  const receiver = await startWebhookReceiver();
  const tenant = given ?? (await service.startTenant());
  const api = apiOf(service, tenant.key);
  const lab: BatchLab = createBatchLab(service);
  const said: DeletionCase['said'] = (more = {}) =>
    chatOf(`Tell me of ${word}.`, { entity_id: entity, metadata: { god: word }, ...more });
  const chat = (more?: object) => postChat(service.app, tenant.key, said(more));

  async function subscribe(): Promise<void> {
    const chats = ['chat.completed', 'chat.failed', 'moderation.flagged', 'entity.deleted'];
    await api('post', '/webhooks', { url: receiver.url, events: [...chats, 'compliance.deletion.completed'] });
  }

  async function beginEndless(more: object = {}): Promise<string> {
    const { body } = await chat({ model: 'oloid', ...more }).set('Prefer', 'respond-async');
    const id = String(body.id);
    await waitFor(() => service.provider.request(id), 'the provider call');
    return id;
  }

  async function exportAll(): Promise<void> {
    for (const subject of [{ scope: 'entity', entity_id: entity }, { scope: 'tenant' }]) {
      const { body } = await api('post', '/compliance/exports', subject);
      await jobOf(api, 'exports', String(body.id));
    }
  }

  async function runBatches(): Promise<void> {
    const request = { entityId: entity, metadataJson: JSON.stringify({ god: word }) };
    const ended = await lab.submit(tenant, [`About ${word}`], request);
    await lab.until(ended, 'to end', ({ endedAt }) => endedAt !== undefined);
    const endless = await lab.submit(tenant, [`More about ${word}`], { ...request, model: 'oloid' });
    const [line] = await lab.lines(endless);
    await waitFor(() => service.provider.request(line?.requestId ?? ''), "the batch's provider call");
  }

  return {
    tenant,
    api,
    entity,
    word,
    receiver,
    said,
    subscribe,
    beginEndless,
    pseudonym: createPseudonyms(Buffer.alloc(32, 7)).of(tenant.tenantId, entity),

    async leaveTraces() {
      await subscribe();
      const fields = { entity_id: entity, name: word, subject: word, metadata: { god: word } };
      await api('post', '/entities', fields, { 'Idempotency-Key': 'entity' });
      await chat();
      await api('delete', `/entities/${encodeURIComponent(entity)}/history`);
      await chat();
      await postStream(service.app, tenant.key, said());
      await chat().set('Idempotency-Key', 'chat');
      await chat().set('Prefer', 'respond-async');
      await chat({ messages: [{ role: 'user', content: `${word}, I will kill you` }] });
      await runBatches();
      await ledgerOf(service, await chat());
      await receiver.next('moderation.flagged');
      await exportAll();
      await beginEndless();
      const { tenantId, key } = tenant;
      const mode = key.includes('_test_') ? 'test' : 'live';
      const deadLetter = JSON.stringify({ tenantId, mode, entityId: entity, requestId: 'req_dead' });
      await service.redis.xadd(service.keyspace.shard(0).deadLetters, '*', 's', deadLetter);
    },

    async delete(subject, headers = {}) {
      const { body } = await api('post', '/compliance/deletions', subject, headers);
      // The wire's resource, as toDeletionResource makes it.
      return (await jobOf(api, 'deletions', String(body.id))) as Deletion;
    },
  };
}
