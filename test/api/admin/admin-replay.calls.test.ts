import { beforeEach, expect, it } from '@jest/globals';
import request from 'supertest';

import type { ReplayCall } from '../../../api/admin/requests/replay-failed.ts';
import { ADMIN_TOKEN, errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';

const READER = 'reader-0123456789abcdef0123456789abcdef';
const PATH = '/admin/v1/requests/replay';

const calls: ReplayCall[] = [];
beforeEach(() => {
  calls.length = 0;
});
const admin = useAdmin({
  adminTokens: [
    { name: 'admin', role: 'write', token: ADMIN_TOKEN },
    { name: 'grafana', role: 'read', token: READER },
  ],
  replayFailed(call) {
    calls.push(call);
    return Promise.resolve({ matched: calls.length, requests: [], next: undefined });
  },
});

it('a token that may only read replays nothing', async () => {
  const response = await request(admin.app).post(PATH).auth(READER, { type: 'bearer' }).send({ dry_run: true });

  expect([response.status, errorOf(response)['code'], calls.length]).toEqual([403, 'endpoint_not_allowed', 0]);
});

it('a replay has its line in the audit log, with its filter', async () => {
  await admin.call('post', PATH, { kind: 'async', limit: 7 });

  const { body } = await admin.call('get', '/admin/v1/audit_log');
  const [line] = body.data as Record<string, unknown>[];
  expect(line).toMatchObject({ actor: 'admin', path: PATH, changes: { kind: 'async', limit: 7 }, status: 200 });
});

it('under one Idempotency-Key runs once, and gives its answer again', async () => {
  const key = { 'Idempotency-Key': 'after the outage' };
  const first = await admin.call('post', PATH, { kind: 'async' }, key);
  const again = await admin.call('post', PATH, { kind: 'async' }, key);
  const other = await admin.call('post', PATH, { kind: 'keyed' }, key);
  const without = await admin.call('post', PATH, { kind: 'async' });

  expect([first.body.matched, again.body, without.body.matched]).toEqual([1, first.body, 2]);
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, 'true']);
  expect([other.status, errorOf(other)['code']]).toEqual([422, 'idempotency_mismatch']);
});

it.each([
  [{ start_time: 20, end_time: 10 }, 'end_time'],
  [{ kind: 'stream' }, 'kind'],
  [{ error_code: 'content_policy_violation' }, 'error_code'],
  [{ request_ids: ['req_1'] }, 'request_ids[0]'],
  [{ tenant_id: 'x' }, 'tenant_id'],
  [{ limit: 501 }, 'limit'],
  [{ page: 'next' }, 'page'],
  [{ since: 1 }, 'since'],
])('a filter that means nothing is refused, and its field named: %j', async (body, param) => {
  const response = await admin.call('post', PATH, body);

  expect([response.status, errorOf(response)]).toMatchObject([400, { code: 'invalid_request', param }]);
  expect(calls).toEqual([]);
});
