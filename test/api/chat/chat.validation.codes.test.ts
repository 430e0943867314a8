import { afterEach, describe, expect, it } from '@jest/globals';
import type request from 'supertest';

import { chatOf, postChat, waitFor } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import type { TenantOptions, TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';
const service = useService({ env: { TRUST_PROXY: 'loopback', REQUEST_TIMEOUT_SECONDS: '1' } });
afterEach(async () => {
  service.provider.restore();
  await service.resetBreakers();
});

const MESSAGE = { role: 'user', content: 'Hi' };
const HI = chatOf('Hi', { max_tokens: 5 });
type Provoke = (tenant: TestTenant) => request.Test | Promise<request.Response>;
const post =
  (body: object, options?: { key: string }): Provoke =>
  ({ key }) =>
    postChat(service.app, options?.key ?? key, body);

/**
 * Every code of docs/spec.md#codes, by hand: status, type, what must be named, and how a caller comes to
 * it.
 */
const CODES: [code: string, status: number, type: string, named: RegExp, provoke: Provoke, tenant?: TenantOptions][] = [
  ['missing_api_key', 401, 'authentication_error', /Authorization/, () => postChat(service.app, '', HI)],
  ['invalid_api_key', 401, 'authentication_error', /key/, post(HI, { key: 'svc_sk_live_nonsense' })],
  [
    'expired_api_key',
    401,
    'authentication_error',
    /expired/,
    async ({ key, keyId }) => {
      await service.models.keys.updateOne({ _id: keyId }, { expiresAt: 1 });
      return postChat(service.app, key, HI);
    },
  ],
  ['endpoint_not_allowed', 403, 'permission_error', /`chat`/, post(HI), { key: { scopes: ['usage'] } }],
  [
    'account_suspended',
    403,
    'permission_error',
    /suspended/,
    async ({ key, tenantId }) => {
      await service.admin('patch', `/tenants/${tenantId}`, { status: 'suspended' });
      return postChat(service.app, key, HI);
    },
  ],
  ['insufficient_credits', 402, 'billing_error', /balance/, post(HI), { credits: 0 }],
  [
    'budget_exceeded',
    402,
    'billing_error',
    /budget of 1 tokens/,
    async ({ key, tenantId }) => {
      await postChat(service.app, key, HI);
      await waitFor(() => service.models.ledger.findOne({ tenantId, type: 'usage' }).lean(), 'the ledger entry');
      return postChat(service.app, key, HI);
    },
    { tenant: { monthly_token_budget: 1 } },
  ],
  [
    'rpm_exceeded',
    429,
    'rate_limit_error',
    /1 requests per minute/,
    async ({ key }) => {
      await postChat(service.app, key, HI);
      return postChat(service.app, key, HI);
    },
    { tenant: { rpm: 1 } },
  ],
  [
    'tpm_exceeded',
    429,
    'rate_limit_error',
    /1 tokens per minute/,
    async ({ key }) => {
      await postChat(service.app, key, HI);
      return postChat(service.app, key, HI);
    },
    { tenant: { tpm: 1 } },
  ],
  ['invalid_request', 400, 'invalid_request_error', /`messages` is required/, post({})],
  [
    'message_too_long',
    400,
    'invalid_request_error',
    /`messages\[0\]\.content`.*16000/,
    post(chatOf('a'.repeat(16_001))),
  ],
  ['too_many_messages', 400, 'invalid_request_error', /`messages`.*100/, post({ messages: Array(101).fill(MESSAGE) })],
  ['content_policy_violation', 400, 'invalid_request_error', /moderation/, post(chatOf('parley-moderation-test'))],
  [
    'timeout',
    504,
    'timeout_error',
    /time/,
    ({ key }) => {
      service.provider.change({ first_token_ms: 60_000 });
      return postChat(service.app, key, HI);
    },
  ],
  [
    'model_unavailable',
    503,
    'overloaded_error',
    /provider/,
    ({ key }) => {
      service.provider.change({ fail: 'status', status: 401 });
      return postChat(service.app, key, HI);
    },
  ],
];

describe('every code of the interface can be reached', () => {
  it('every code of the interface can be reached and the table has all fifteen', () => {
    expect(new Set(CODES.map(([code]) => code)).size).toBe(15);
  });

  it.each(CODES)(
    'every code of the interface can be reached %s, with status %i and type %s',
    async (code, status, type, named, provoke, options = {}) => {
      const tenant = await service.startTenant(options);

      const refusal = refusalOf(await provoke(tenant));

      expect(refusal).toMatchObject({ code, status, type, message: expect.stringMatching(named) });
    },
  );
});
