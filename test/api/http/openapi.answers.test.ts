import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createAnswerChecker, endpointsById } from '../../fuzz/check-answer.ts';
import type { AnswerChecker } from '../../fuzz/check-answer.ts';
import { pointerOf } from '../../fuzz/read-document.ts';
import type { Endpoint } from '../../fuzz/read-document.ts';
import { buy } from '../../support/billing.ts';
import { chatOf, ledgerOf, postChat, postStream, requestIdOf } from '../../support/chat.ts';
import { readDocument, sendExample } from '../../support/openapi.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
let checker: AnswerChecker;
let endpoints: ReadonlyMap<string, Endpoint>;
const service = useService({ env: { PAYMENTS: 'test', WEBHOOK_ALLOW_PRIVATE: 'true' } });
const tenant = useTenant(service);
beforeAll(async () => {
  const document = await readDocument(service);
  checker = createAnswerChecker(document);
  endpoints = endpointsById(document);
});
afterEach(() => {
  service.provider.restore();
});

async function call(name: string, values: Record<string, string> = {}, more: { body?: unknown; query?: object } = {}) {
  const endpoint = endpoints.get(name);
  if (endpoint === undefined) throw new Error(`The document has no ${name}.`);
  const { body, query = {} } = more;
  const sent = {
    query: { ...query },
    headers: {},
    ...(body === undefined ? {} : { contentType: 'application/json', body }),
  };
  const answer = await sendExample(service, endpoint, sent, { key: tenant.key, values });
  return { answer, status: answer.status, faults: checker.check(endpoint, answer) };
}

/** The answer fits, and its list has something in it. */
async function expectFilled(name: string, values: Record<string, string> = {}): Promise<void> {
  const { answer, faults } = await call(name, values, { query: { limit: 100 } });
  const { data } = JSON.parse(answer.text) as { data: unknown[] };
  expect([name, answer.status, faults, data.length > 0]).toEqual([name, 200, [], true]);
}

describe('the document tells truly of', () => {
  it('chat requests of every end', async () => {
    const done = await postChat(service.app, tenant.key, chatOf('Hi', { entity_id: 'pupil', metadata: { a: [1] } }));
    const refused = await postChat(service.app, tenant.key, chatOf('I will kill you'));
    service.provider.change({ text: 'One two three four five six', fail: 'truncate', fail_after: 3 });
    const broken = await postStream(service.app, tenant.key, chatOf('Hi'));

    const stream = endpoints.get('streamChat');
    if (stream === undefined) throw new Error('The document has no streamChat.');
    const headers = broken.headers as Record<string, string>;
    expect(checker.check(stream, { status: 200, headers, text: String(broken.body) })).toEqual([]);
    expect(broken.body).toContain('"error":{');
    for (const response of [done, refused, broken]) {
      expect(await call('getChatRequest', { request_id: requestIdOf(response) })).toMatchObject({
        status: 200,
        faults: [],
      });
    }
    service.provider.change({ first_token_ms: 60_000 });
    const cancelled = await postChat(service.app, tenant.key, chatOf('Later')).set('Prefer', 'respond-async');
    await apiOf(service, tenant.key)('post', `/chat/${requestIdOf(cancelled)}/cancel`);
    for (const [response, status] of [
      [refused, 400],
      [cancelled, 409],
    ] as const) {
      expect(await call('resumeChatStream', { request_id: requestIdOf(response) })).toMatchObject({
        status,
        faults: [],
      });
    }
    await ledgerOf(service, done);
    await expectFilled('listUsageRequests');
    await expectFilled('listTransactions');
    await expectFilled('listEntities');
    await expectFilled('getEntityHistory', { entity_id: 'pupil' });
    const groups = { group_by: ['key_id', 'model', 'entity_id', 'mode', 'endpoint'] };
    expect(await call('getUsage', {}, { query: groups })).toMatchObject({ status: 200, faults: [] });
  });

  it('batches and their results, wrong requests included', async () => {
    const requests = [{ custom_id: 'a', body: chatOf('Hi', { metadata: { b: 1 } }) }, { custom_id: 'b', body: {} }, {}];
    const { body } = await apiOf(service, tenant.key)('post', '/batches', { requests, metadata: { job: 1 } });
    const values = { batch_id: String(body.id) };
    await waitFor(async () => {
      const { answer } = await call('getBatch', values);
      return (JSON.parse(answer.text) as { status: string }).status === 'completed' || undefined;
    }, 'the end of the batch');

    const results = await call('getBatchResults', values);
    expect(results).toMatchObject({ status: 200, faults: [] });
    expect(results.answer.text.trim().split('\n')).toHaveLength(requests.length);
    expect(await call('getBatch', values)).toMatchObject({ status: 200, faults: [] });
    await expectFilled('listBatches');
  });

  it('exports, their archives, and deletions', async () => {
    const whom = { scope: 'entity', entity_id: 'erika' };
    await apiOf(service, tenant.key)('put', '/entities/erika', { name: 'Erika' });
    const made = await call('createExport', {}, { body: whom });
    const { id } = JSON.parse(made.answer.text) as { id: string };
    const early = await call('downloadExport', { export_id: id });
    expect([made.faults, early.faults]).toEqual([[], []]);
    const download = await waitFor(async () => {
      const result = await call('downloadExport', { export_id: id });
      return result.status === 200 ? result : undefined;
    }, 'the archive');
    expect(download.faults).toEqual([]);
    expect(await call('getExport', { export_id: id })).toMatchObject({ status: 200, faults: [] });

    const deletion = await call('createDeletion', {}, { body: { ...whom, reason: 'Asked for' } });
    const { id: deletionId } = JSON.parse(deletion.answer.text) as { id: string };
    await waitFor(async () => {
      const { answer } = await call('getDeletion', { deletion_id: deletionId });
      return (JSON.parse(answer.text) as { status: string }).status === 'completed' || undefined;
    }, 'the deletion');
    expect(await call('getDeletion', { deletion_id: deletionId })).toMatchObject({ status: 200, faults: [] });
    expect(await call('downloadExport', { export_id: id })).toMatchObject({ status: 410, faults: [] });
    await expectFilled('listExports');
    await expectFilled('listDeletions');
  });

  it('what is bought', async () => {
    await service.admin('put', '/packages', {
      currency: 'usd',
      price_per_million_credits: 500,
      packages: [{ id: 'starter', name: 'Starter', credits: 1_000_000, amount: 500 }],
    });
    const { body } = await buy(service, tenant, { package_id: 'starter' });
    const page = new URL(String(body.url)).pathname;
    await request(service.app).post(page).type('form').send({ action: 'pay' });

    await expectFilled('listBillingPackages');
    await expectFilled('listPurchases');
    await expectFilled('listTransactions');
    expect(await call('getCheckout', { checkout_id: String(body.id) })).toMatchObject({ status: 200, faults: [] });
  });

  it('webhooks, their deliveries and what they are sent', async () => {
    const receiver = await startWebhookReceiver();
    const api = apiOf(service, tenant.key);
    const events = [
      'key.created',
      'key.revoked',
      'entity.deleted',
      'chat.completed',
      'chat.failed',
      'moderation.flagged',
    ];
    const { body: webhook } = await api('post', '/webhooks', { url: receiver.url, events });
    await api('post', `/webhooks/${String(webhook.id)}/test`);
    const { body: key } = await api('post', '/keys', { scopes: ['chat'] });
    await api('delete', `/keys/${String(key.id)}`);
    await api('put', '/entities/gone', {});
    await api('delete', '/entities/gone');
    await postChat(service.app, tenant.key, chatOf('Hi'));
    await postChat(service.app, tenant.key, chatOf('I will kill you'));

    for (const type of ['ping', ...events]) await receiver.next(type);
    const faults = receiver.received.flatMap(({ body }) =>
      checker.validate(
        pointerOf('webhooks', body.type, 'post', 'requestBody', 'content', 'application/json', 'schema'),
        body,
      ),
    );
    await receiver.close();

    expect(faults).toEqual([]);
    await expectFilled('listWebhooks');
    await expectFilled('listDeliveries', { webhook_id: String(webhook.id) });
    await waitFor(async () => {
      const { body } = await api('get', `/webhooks/${String(webhook.id)}/deliveries?limit=100`);
      return (body.data as { attempts: unknown[] }[]).every(({ attempts }) => attempts.length > 0) || undefined;
    }, 'the attempts');
    await expectFilled('listDeliveries', { webhook_id: String(webhook.id) });
    await expectFilled('listChatRequests');
    await expectFilled('listKeys');
    await expectFilled('listAuditLog');
  });

  it('repeated calls under an Idempotency-Key, whose answers leave out what is shown once', async () => {
    const endpoint = endpoints.get('createKey');
    if (endpoint === undefined) throw new Error('The document has no createKey.');
    const sent = {
      query: {},
      headers: { 'Idempotency-Key': 'once' },
      contentType: 'application/json',
      body: { name: 'a' },
    };
    const answers = [];
    for (let time = 0; time < 2; time += 1)
      answers.push(await sendExample(service, endpoint, sent, { key: tenant.key, values: {} }));

    expect(answers.map((answer) => [answer.status, checker.check(endpoint, answer)])).toEqual([
      [201, []],
      [201, []],
    ]);
    expect(answers.map(({ text }) => text.includes('"value"'))).toEqual([true, false]);
    expect(answers[1]?.headers['idempotent-replayed']).toBe('true');
  });
});
