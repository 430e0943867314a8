import { describe, expect, it } from '@jest/globals';

import { chatOf, postChat, postStream } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { useService, useTenant } from '../../support/use-service.ts';

const MESSAGE = { role: 'user', content: 'Hi' };
const service = useService();
const tenant = useTenant(service);

const metadataOf = (json: string) => `{"messages":[{"role":"user","content":"Hi"}],"metadata":${json}}`;
const nested = (depth: number) => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth);

/** What the refusal of a body must say: code, param and a part of the rule. test/unit/contracts has every rule. */
const REFUSED: [string, object | string, string, string | undefined, string][] = [
  ['malformed JSON', '{"messages":[', 'invalid_request', undefined, 'not valid JSON'],
  ['no messages', {}, 'invalid_request', 'messages', 'required'],
  ['101 messages', { messages: Array(101).fill(MESSAGE) }, 'too_many_messages', 'messages', '100'],
  ['16,001 characters', chatOf('a'.repeat(16_001)), 'message_too_long', 'messages[0].content', '16000'],
  ['metadata 6 deep', metadataOf(nested(6)), 'invalid_request', 'metadata', '5 levels'],
  ['metadata 5,000 deep', metadataOf(nested(5_000)), 'invalid_request', undefined, '100 levels'],
  ['lists 100,000 deep', metadataOf('['.repeat(100_000) + ']'.repeat(100_000)), 'invalid_request', undefined, ''],
  ['__proto__ in metadata', metadataOf('{"a":{"__proto__":{"x":1}}}'), 'invalid_request', 'metadata', '__proto__'],
];

describe('a refused body', () => {
  it.each(REFUSED)('a refused body names field and rule: %s', async (_what, body, code, param, rule) => {
    for (const post of [postChat, postStream]) {
      const refusal = refusalOf(await post(service.app, tenant.key, body));

      expect(refusal).toMatchObject({ status: 400, code, type: 'invalid_request_error' });
      if (rule !== '') expect(refusal).toMatchObject({ param, message: expect.stringContaining(rule) });
    }
  });

  it('takes one from the rpm and nothing else: no record, no tokens, no throttle, no hold, no job, no provider call', async () => {
    const { key, keyId, tenantId } = await service.startTenant({ tenant: { rpm: 10, daily_requests: 5 } });
    const keys = service.keyspace.shard(0);
    const { calls } = service.provider.stats();

    const answers = [await postChat(service.app, key, '{'), await postChat(service.app, key, {})];

    expect(answers.map((answer) => refusalOf(answer).remaining)).toEqual([9, 8]);
    expect(await service.redis.zcard(keys.keyRpm(keyId))).toBe(2);
    const untouched = [
      keys.throttle('chat', keyId),
      keys.tokenWindow(keyId),
      keys.daily(keyId),
      keys.pending(tenantId),
      ...answers.map(({ headers }) => keys.record(String(headers['x-request-id']))),
    ];
    expect(await service.redis.exists(...untouched)).toBe(0);
    expect(await service.redis.zcard(keys.prioritized('interactive'))).toBe(0);
    expect((await service.admin('get', `/tenants/${tenantId}`)).body).toMatchObject({ held: 0, balance: 1_000_000 });
    expect(service.provider.stats().calls).toBe(calls);
  });

  it('is 429 over the limit, so that junk is limited too', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 2 } });
    await postChat(service.app, key, '{');
    await postChat(service.app, key, '{');

    expect(refusalOf(await postChat(service.app, key, '{'))).toMatchObject({
      status: 429,
      code: 'rpm_exceeded',
      remaining: 0,
    });
  });

  it('is no fault of the service: nothing is logged as an error', () => {
    expect(service.log.errors()).toEqual([]);
  });
});

describe('an accepted body', () => {
  it.each([
    ['100 messages', { messages: Array(100).fill(MESSAGE) }],
    ['16,000 emoji', chatOf('😀'.repeat(16_000))],
    ['a NUL', chatOf('before\0after')],
    ['lone surrogates', '{"messages":[{"role":"user","content":"a\\ud800b\\udc00"}],"subject":"\\ud800"}'],
    ['metadata 5 deep', metadataOf(nested(5))],
    ['16,384 tokens', chatOf('Hi', { max_tokens: 16_384 })],
    ['a tier', chatOf('Hi', { model: 'oloid' })],
    ['every role', { messages: ['system', 'assistant', 'user'].map((role) => ({ role, content: 'x' })) }],
  ])('an accepted body is answered: %s', async (_what, body) => {
    const response = await postChat(service.app, tenant.key, body);
    expect([response.status, response.text.slice(0, 20)]).toEqual([
      200,
      '{"id":"' + String(response.body.id).slice(0, 13),
    ]);
    expect(response.headers['x-ignored-fields']).toBeUndefined();
  });

  it('has its metadata echoed, methods of every object included', async () => {
    const metadata = { toJSON: 1, toString: [2], order: { id: 'ö' } };

    const response = await postChat(service.app, tenant.key, chatOf('Hi', { metadata }));

    expect(response.body.metadata).toEqual(metadata);
  });

  it('may hold unknown fields: they are ignored, and named in a header', async () => {
    const body =
      '{"messages":[{"role":"user","content":"Hi","name":"Ann"}],"temperature":"hot","ü,":1,"__proto__":{"model":"oloid"}}';

    const response = await postChat(service.app, tenant.key, body);

    expect(response.status).toBe(200);
    expect(response.body.model).toBe('mobius');
    expect(response.headers['x-ignored-fields']).toBe(
      'temperature, %C3%BC%2C, __proto__, messages[].name'.replace('[]', '%5B%5D'),
    );
  });
});

describe('the order of checks', () => {
  it('is key, scope, tenant, body, rate limits, credits, budget', async () => {
    const broke = await service.startTenant({ credits: 0, tenant: { rpm: 2 }, key: { scopes: ['chat'] } });
    const { app } = service;
    const codeOf = async (key: string, body: object | string) => refusalOf(await postChat(app, key, body)).code;

    expect(await codeOf('junk', '{')).toBe('invalid_api_key');
    expect(await codeOf(broke.key, '{')).toBe('invalid_request');
    expect(await codeOf(broke.key, chatOf('Hi'))).toBe('insufficient_credits');
    expect(await codeOf(broke.key, chatOf('Hi'))).toBe('rpm_exceeded');
  });

  it('puts scope and suspension before the body', async () => {
    const { key, tenantId } = await service.startTenant({ key: { scopes: ['chat'] } });

    const wrongScope = await postStream(service.app, key, '{');
    await service.admin('patch', `/tenants/${tenantId}`, { status: 'suspended' });
    const suspended = await postChat(service.app, key, '{');

    expect(refusalOf(wrongScope).code).toBe('endpoint_not_allowed');
    expect(refusalOf(suspended).code).toBe('account_suspended');
  });
});
