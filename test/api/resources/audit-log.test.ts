import { describe, expect, it } from '@jest/globals';

import { refusalOf } from '../../support/refusal.ts';
import type { TestTenant } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService } from '../../support/use-service.ts';
const service = useService({ workers: 0 });

interface Entry {
  id: string;
  actor: string;
  action: string;
  target: string;
  request_id: string;
  details: object;
}

async function entriesOf({ key }: TestTenant): Promise<Entry[]> {
  const { body } = await apiOf(service, key)('get', '/compliance/audit_log?order=asc&limit=100');
  return body.data as Entry[];
}

describe('GET /compliance/audit_log', () => {
  it('GET /compliance/audit_log tells what keys have done to keys', async () => {
    const tenant = await service.startTenant();
    const api = apiOf(service, tenant.key);
    const { id } = await makeKey(api, { scopes: ['chat'] });
    await api('patch', `/keys/${id}`, { name: 'new', rpm: 5 });
    await api('post', `/keys/${id}/rotate`, { grace_seconds: 60 });
    const { headers } = await api('delete', `/keys/${id}`);

    const [, , ...entries] = await entriesOf(tenant);

    const by = {
      object: 'audit_log.entry',
      actor: tenant.keyId,
      target: id,
      id: expect.stringMatching(/^aud_\w{24}$/),
    };
    expect(entries).toEqual([
      expect.objectContaining({ ...by, action: 'key.created', details: { mode: 'live', scopes: ['chat'] } }),
      expect.objectContaining({ ...by, action: 'key.updated', details: { fields: ['name', 'rpm'] } }),
      expect.objectContaining({ ...by, action: 'key.rotated', details: { grace_seconds: 60 } }),
      expect.objectContaining({ ...by, action: 'key.revoked', request_id: headers['x-request-id'] }),
    ]);
  });

  it('GET /compliance/audit_log tells what the administrator has done', async () => {
    const tenant = await service.startTenant({ credits: 0 });
    const { tenantId, keyId } = tenant;
    await service.admin('patch', `/tenants/${tenantId}`, { status: 'suspended' });
    await service.admin('patch', `/tenants/${tenantId}`, { status: 'active' });
    await service.admin('patch', `/tenants/${tenantId}`, { rpm: 1_000 });
    const grant = await service.admin('post', `/tenants/${tenantId}/credits`, { credits: 5, reason: 'gift' });
    const adjustment = await service.admin('post', `/tenants/${tenantId}/credits`, { credits: -1 });
    const made = await service.admin('post', `/tenants/${tenantId}/keys`, {});
    await service.admin('delete', `/tenants/${tenantId}/keys/${String(made.body.id)}`);

    const entries = await entriesOf(tenant);

    expect(new Set(entries.map(({ actor }) => actor))).toEqual(new Set(['administrator']));
    expect(entries.map(({ action, target }) => [action, target])).toEqual([
      ['tenant.created', tenantId],
      ['key.created', keyId],
      ['tenant.suspended', tenantId],
      ['tenant.activated', tenantId],
      ['tenant.updated', tenantId],
      ['credits.granted', grant.body.id],
      ['credits.adjusted', adjustment.body.id],
      ['key.created', made.body.id],
      ['key.revoked', made.body.id],
    ]);
    expect(entries.find(({ action }) => action === 'credits.granted')?.details).toEqual({ credits: 5, reason: 'gift' });
  });

  it('GET /compliance/audit_log tells nothing of a refused act', async () => {
    const tenant = await service.startTenant();
    const before = await entriesOf(tenant);
    const api = apiOf(service, tenant.key);

    await api('post', '/keys', { mode: 'none' });
    await api('delete', '/keys/key_000000000000000000000000');

    expect(await entriesOf(tenant)).toEqual(before);
  });

  it('GET /compliance/audit_log is read in pages, newest first', async () => {
    const tenant = await service.startTenant();
    const api = apiOf(service, tenant.key);
    await makeKey(api);

    const first = await api('get', '/compliance/audit_log?limit=2');
    const rest = await api('get', `/compliance/audit_log?limit=2&after=${String(first.body.last_id)}`);

    const all = (await entriesOf(tenant)).map(({ id }) => id).toReversed();
    expect([...first.body.data, ...rest.body.data].map(({ id }: Entry) => id)).toEqual(all);
    expect([first.body.has_more, rest.body.has_more]).toEqual([true, false]);
  });

  it('has only what concerns the tenant, and takes no foreign cursor', async () => {
    const [tenant, other] = [await service.startTenant(), await service.startTenant()];
    const [foreign] = await entriesOf(other);

    expect((await entriesOf(tenant)).map(({ target }) => target)).toEqual([tenant.tenantId, tenant.keyId]);
    const response = await apiOf(service, tenant.key)('get', `/compliance/audit_log?after=${String(foreign?.id)}`);
    expect(refusalOf(response)).toMatchObject({ status: 400, param: 'after' });
  });
});
