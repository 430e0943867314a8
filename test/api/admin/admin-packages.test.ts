import { afterEach, describe, expect, it } from '@jest/globals';

import { errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';
const admin = useAdmin();
afterEach(() => {
  expect(admin.errors).toEqual([]);
});

const PACKAGE = { id: 'small', name: 'Small', credits: 1_000_000, amount: 500 };
const LIST = { currency: 'usd', price_per_million_credits: 600, packages: [PACKAGE] };
const put = (body: object) => admin.call('put', '/admin/v1/packages', body);

it('nothing is sold before an administrator has said at what price', async () => {
  expect((await admin.call('get', '/admin/v1/packages')).body).toEqual({
    object: 'price_list',
    currency: 'usd',
    price_per_million_credits: null,
    packages: [],
    updated_at: null,
  });
});

it('a list replaces the one before, and a package keeps its time of creation', async () => {
  const first = Math.floor(admin.clock.now() / 1000);
  const wanted = { ...LIST, packages: [PACKAGE, { ...PACKAGE, id: 'old', expires_at: 1_700_000_000 }] };
  const { status, body } = await put(wanted);

  expect(status).toBe(200);
  const small = { ...PACKAGE, object: 'billing.package', created_at: first, currency: 'usd', expires_at: null };
  expect(body).toEqual({
    object: 'price_list',
    currency: 'usd',
    price_per_million_credits: 600,
    packages: [small, { ...small, id: 'old', expires_at: 1_700_000_000 }],
    updated_at: first,
  });

  admin.clock.advance(5_000);
  await put({ currency: 'eur', price_per_million_credits: null, packages: [{ ...PACKAGE, amount: 1 }] });
  expect((await admin.call('get', '/admin/v1/packages')).body).toEqual({
    object: 'price_list',
    currency: 'eur',
    price_per_million_credits: null,
    packages: [{ ...small, amount: 1, currency: 'eur' }],
    updated_at: first + 5,
  });
});

it('says what two packages have in common', async () => {
  const response = await put({ ...LIST, packages: [PACKAGE, { ...PACKAGE, name: 'Another' }] });
  expect(response.body).toMatchObject({
    error: { message: '`packages[1]` must have another `id` than the packages before it.' },
  });
});

describe('a price list', () => {
  it.each<[string, object]>([
    ['currency', { ...LIST, currency: 'USD' }],
    ['currency', { ...LIST, currency: 'dollars' }],
    ['packages[0].amount', { ...LIST, currency: 'isk', packages: [{ ...PACKAGE, amount: 550 }] }],
    ['packages[0].amount', { ...LIST, currency: 'kwd', packages: [{ ...PACKAGE, amount: 505 }] }],
    ['currency', { packages: [], price_per_million_credits: 1 }],
    ['price_per_million_credits', { currency: 'usd', packages: [] }],
    ['price_per_million_credits', { ...LIST, price_per_million_credits: 0 }],
    ['price_per_million_credits', { ...LIST, price_per_million_credits: 1.5 }],
    ['price_per_million_credits', { ...LIST, price_per_million_credits: '5' }],
    ['packages', { currency: 'usd', price_per_million_credits: 1 }],
    ['packages', { ...LIST, packages: Array.from({ length: 101 }, (_, index) => ({ ...PACKAGE, id: `p${index}` })) }],
    ['packages[1]', { ...LIST, packages: [PACKAGE, PACKAGE] }],
    ['packages[0].id', { ...LIST, packages: [{ ...PACKAGE, id: 'Not an id' }] }],
    ['packages[0].name', { ...LIST, packages: [{ ...PACKAGE, name: '' }] }],
    ['packages[0].credits', { ...LIST, packages: [{ ...PACKAGE, credits: 0 }] }],
    ['packages[0].credits', { ...LIST, packages: [{ ...PACKAGE, credits: 2_000_000_000 }] }],
    ['packages[0].amount', { ...LIST, packages: [{ ...PACKAGE, amount: 100_000_000 }] }],
    ['packages[0].expires_at', { ...LIST, packages: [{ ...PACKAGE, expires_at: 'never' }] }],
    ['tax', { ...LIST, tax: 1 }],
  ])('a price list is refused with the field named: %s %#', async (param, body) => {
    const before = (await admin.call('get', '/admin/v1/packages')).body as object;
    const response = await put(body);
    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    expect((await admin.call('get', '/admin/v1/packages')).body).toEqual(before);
  });
});

it('is for administrators, by GET and PUT', async () => {
  expect((await admin.call('delete', '/admin/v1/packages')).status).toBe(405);
});
