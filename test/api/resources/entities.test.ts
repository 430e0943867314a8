import { describe, expect, it } from '@jest/globals';

import { chatOf, postChat } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useApi, useService, useTenant } from '../../support/use-service.ts';
const service = useService({ workers: 0 });
const tenant = useTenant(service);
const api = useApi(service, tenant);

let last = 0;
function newId(): string {
  last += 1;
  return `pupil ${last}`;
}

const pathOf = (entityId: string) => `/entities/${encodeURIComponent(entityId)}`;
const FIELDS = { subject: 'Biology', grade: '7', name: 'Ada', metadata: { class: { room: '7b' } } };

/** Nested as deep as it says: `{}` is one level. */
function nested(depth: number): object {
  return depth === 1 ? {} : { a: nested(depth - 1) };
}

describe('POST /entities', () => {
  it('POST /entities makes an entity with what it is given', async () => {
    const entity_id = newId();

    const response = await api('post', '/entities', { entity_id, ...FIELDS });

    expect(response.status).toBe(201);
    expect(response.body).toEqual({
      id: entity_id,
      object: 'entity',
      created_at: expect.any(Number),
      entity_id,
      ...FIELDS,
    });
    expect((await api('get', pathOf(entity_id))).body).toEqual(response.body);
  });

  it('POST /entities needs no more than an id', async () => {
    const { status, body } = await api('post', '/entities', { entity_id: newId(), subject: null });
    expect(status).toBe(201);
    expect(body).toMatchObject({ subject: null, grade: null, name: null, metadata: {} });
  });

  it('is 409 when there is one, which stays as it is', async () => {
    const entity_id = newId();
    await api('post', '/entities', { entity_id, ...FIELDS });

    expect(refusalOf(await api('post', '/entities', { entity_id }))).toMatchObject({ status: 409, code: 'conflict' });

    expect((await api('get', pathOf(entity_id))).body).toMatchObject(FIELDS);
  });

  it.each([
    ['entity_id', {}],
    ['entity_id', { entity_id: '' }],
    ['entity_id', { entity_id: 5 }],
    ['entity_id', { entity_id: { $ne: null } }],
    ['entity_id', { entity_id: '😀'.repeat(257) }],
    ['subject', { entity_id: 'a', subject: 'x'.repeat(1_001) }],
    ['grade', { entity_id: 'a', grade: 7 }],
    ['name', { entity_id: 'a', name: ['Ada'] }],
    ['name', { entity_id: 'a', name: 'half \ud800' }],
    ['subject', { entity_id: 'a', subject: '\udc00' }],
    ['metadata', { entity_id: 'a', metadata: 'text' }],
    ['metadata', { entity_id: 'a', metadata: nested(6) }],
    ['metadata', { entity_id: 'a', metadata: { text: 'x'.repeat(16_384) } }],
    ['metadata', { entity_id: 'a', metadata: JSON.parse('{"__proto__":{}}') as object }],
    ['messages', { entity_id: 'a', messages: [] }],
  ])('POST /entities names the field that is wrong: %s', async (param, body) => {
    expect(refusalOf(await api('post', '/entities', body))).toMatchObject({
      status: 400,
      code: 'invalid_request',
      param,
    });
  });

  it('POST /entities takes the largest values', async () => {
    const entity = { entity_id: '😀'.repeat(256), subject: '😀'.repeat(1_000), metadata: { a: nested(4) } };
    const response = await api('post', '/entities', entity);
    expect(response.body).toMatchObject(entity);
    expect((await api('get', pathOf(entity.entity_id))).body).toEqual(response.body);
  });
});

describe('an entity_id of any characters', () => {
  it.each([
    'a/b',
    '..%2f',
    '?x=1#y',
    'ü 漢字 😀',
    '$ne',
    '__proto__',
    'history',
    '%',
    '+',
    ' ',
    'a\nb',
    'nul\0byte',
    '{"$gt":""}',
  ])('an entity_id of any characters is one path segment, escaped: %j', async (entityId) => {
    const path = pathOf(entityId);
    expect((await api('put', path, { name: entityId })).status).toBe(201);
    expect((await api('get', path)).body).toMatchObject({ id: entityId, entity_id: entityId, name: entityId });
    expect((await api('patch', path, { grade: '1' })).body).toMatchObject({ name: entityId, grade: '1' });
    expect((await api('get', `${path}/history`)).body).toMatchObject({ data: [] });
    const list = await api('get', `/entities?limit=1&after=${encodeURIComponent(entityId)}`);
    expect(list.status).toBe(200);
    expect((await api('delete', path)).body).toEqual({ id: entityId, object: 'entity', deleted: true });
    expect((await api('get', path)).status).toBe(404);
  });

  it('is 400 with half a surrogate pair, which would be the same name as any other half', async () => {
    for (const entityId of ['\ud800', 'pupil-\udfff']) {
      const made = refusalOf(await api('post', '/entities', { entity_id: entityId }));
      expect(made).toMatchObject({ status: 400, code: 'invalid_request', param: 'entity_id' });
      const chat = refusalOf(await postChat(service.app, tenant.key, { ...chatOf('Hi'), entity_id: entityId }));
      expect(chat).toMatchObject({ status: 400, code: 'invalid_request', param: 'entity_id' });
    }
  });
});

describe('PUT /entities/{entity_id}', () => {
  it('makes it, then gives it exactly the new fields', async () => {
    const path = pathOf(newId());
    const made = await api('put', path, FIELDS);
    const replaced = await api('put', path, { name: 'Grace' });

    expect([made.status, replaced.status]).toEqual([201, 200]);
    expect(replaced.body).toEqual({ ...made.body, name: 'Grace', subject: null, grade: null, metadata: {} });
  });

  it('takes an entity_id in the body when it is the same', async () => {
    const entity_id = newId();
    expect((await api('put', pathOf(entity_id), { entity_id })).status).toBe(201);
    expect(refusalOf(await api('put', pathOf(entity_id), { entity_id: 'other' }))).toMatchObject({
      status: 400,
      param: 'entity_id',
    });
  });

  it('PUT /entities/{entity_id} is 400 for an id that is too long', async () => {
    expect(refusalOf(await api('put', pathOf('x'.repeat(257)), {}))).toMatchObject({ status: 400, param: 'entity_id' });
  });

  it('PUT /entities/{entity_id} makes one of many at the same time', async () => {
    const path = pathOf(newId());
    const responses = await Promise.all(
      Array.from({ length: 6 }, (_, index) => api('put', path, { name: String(index) })),
    );
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 200, 201]);
  });
});

describe('PATCH /entities/{entity_id}', () => {
  it('changes what it names, takes away what is null and leaves the rest', async () => {
    const path = pathOf(newId());
    await api('put', path, FIELDS);

    const response = await api('patch', path, { subject: 'Physics', grade: null, metadata: { b: 1 } });

    expect(response.body).toMatchObject({ subject: 'Physics', grade: null, name: 'Ada', metadata: { b: 1 } });
    expect((await api('patch', path, { metadata: null })).body).toMatchObject({ name: 'Ada', metadata: {} });
    expect((await api('patch', path, {})).body).toMatchObject({ name: 'Ada' });
  });

  it.each([
    ['subject', { subject: 5 }],
    ['entity_id', { entity_id: 'other' }],
  ])('PATCH /entities/{entity_id} names the field that is wrong: %s', async (param, body) => {
    const path = pathOf(newId());
    await api('put', path, {});
    expect(refusalOf(await api('patch', path, body))).toMatchObject({ status: 400, param });
  });
});

describe('an unknown entity', () => {
  it('leaves nothing where no request names it', async () => {
    const { tenantId } = tenant;

    expect((await api('delete', pathOf('never-there'))).status).toBe(404);

    expect(await service.models.entities.countDocuments({ tenantId, entityId: 'never-there' })).toBe(0);
  });

  it('leaves nothing of what cannot be the id of one', async () => {
    const { tenantId } = tenant;
    const count = () => service.models.entities.countDocuments({ tenantId });
    const before = await count();
    const answers = await Promise.all(
      ['x'.repeat(257), 'x'.repeat(4_000), '😀'.repeat(257)].map((id) => api('delete', pathOf(id))),
    );
    expect(answers.map((answer) => refusalOf(answer).status)).toEqual([404, 404, 404]);
    expect(await count()).toBe(before);
  });

  it.each([
    ['get', ''],
    ['patch', ''],
    ['delete', ''],
    ['get', '/history'],
    ['delete', '/history'],
  ] as const)('an unknown entity is 404: %s %s', async (method, rest) => {
    for (const entityId of [newId(), 'x'.repeat(300)]) {
      const response = await api(method, pathOf(entityId) + rest, method === 'patch' ? {} : undefined);
      expect(refusalOf(response)).toMatchObject({ status: 404, code: 'not_found' });
    }
  });

  it('is one that was deleted, until it is made again, empty', async () => {
    const entityId = newId();
    await api('put', pathOf(entityId), FIELDS);
    await api('delete', pathOf(entityId));

    for (const method of ['get', 'delete'] as const) expect((await api(method, pathOf(entityId))).status).toBe(404);
    expect((await api('post', '/entities', { entity_id: entityId, name: 'again' })).status).toBe(201);

    expect((await api('get', pathOf(entityId))).body).toMatchObject({ name: 'again', subject: null, metadata: {} });
  });

  it('leaves nothing but its id in the database', async () => {
    const entityId = newId();
    await api('put', pathOf(entityId), { ...FIELDS, name: 'Canary Name' });
    await api('delete', pathOf(entityId));

    const row = await service.models.entities.findOne({ tenantId: tenant.tenantId, entityId }).lean();
    expect(JSON.stringify(row)).not.toMatch(/Canary|Biology|"7b"/);
    expect(row?.expiresAt?.getTime()).toBeGreaterThan(Date.now());
  });
});

describe('GET /entities', () => {
  it("lists the tenant's own, without deleted ones, in pages", async () => {
    const list = apiOf(service, (await service.startTenant()).key);
    for (const entityId of ['a', 'b/c', 'gone', 'd']) await list('put', pathOf(entityId), {});
    await list('delete', '/entities/gone');

    const first = await list('get', '/entities?limit=2&order=asc');
    const second = await list(
      'get',
      `/entities?limit=2&order=asc&after=${encodeURIComponent(String(first.body.last_id))}`,
    );
    const newest = await list('get', '/entities');

    const ids = ({ body }: { body: { data: { id: string }[] } }) => body.data.map(({ id }) => id);
    expect([ids(first), ids(second)]).toEqual([['a', 'b/c'], ['d']]);
    expect([first.body.has_more, second.body.has_more]).toEqual([true, false]);
    expect(ids(newest)).toEqual(['d', 'b/c', 'a']);
  });
});

it('a deletion is in the audit log', async () => {
  const entityId = newId();
  await api('put', pathOf(entityId), {});
  await api('delete', `${pathOf(entityId)}/history`);
  await api('delete', pathOf(entityId));

  const { body } = await api('get', '/compliance/audit_log?limit=2');
  expect(body.data).toMatchObject([
    { action: 'entity.deleted', target: entityId, actor: tenant.keyId },
    { action: 'entity.history_deleted', target: entityId },
  ]);
});

it('a repeated Idempotency-Key gives the same entity, and is found by the entity', async () => {
  const entity_id = newId();
  const name = { 'Idempotency-Key': entity_id };
  const first = await api('post', '/entities', { entity_id, ...FIELDS }, name);
  const second = await api('post', '/entities', { entity_id, ...FIELDS }, name);

  expect([first.status, second.status]).toEqual([201, 201]);
  expect(second.body).toEqual(first.body);
  expect(await service.models.idempotency.countDocuments({ tenantId: tenant.tenantId, entityId: entity_id })).toBe(1);
});
