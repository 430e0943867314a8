import { expect } from '@jest/globals';
import type request from 'supertest';

import type { TestService, TestTenant } from './service.ts';
import { apiOf } from './tenant-api.ts';
import { waitFor } from './wait-for.ts';

export const URLS = { success_url: 'https://shop.test/thanks?a=1', cancel_url: 'http://shop.test:8080/back' };

export interface Transaction {
  id: string;
  type: string;
  credits: number;
  balance_after: number;
  request_id: string | null;
  purchase_id: string | null;
}

export function buy(
  service: TestService,
  { key }: Pick<TestTenant, 'key'>,
  body: object = { credits: 1_000 },
): Promise<request.Response> {
  return apiOf(service, key)('post', '/billing/checkout', { ...URLS, ...body });
}

/** All of the tenant's transactions, oldest first, read in small pages. */
export async function transactionsOf(service: TestService, { key }: TestTenant): Promise<Transaction[]> {
  const all: Transaction[] = [];
  for (;;) {
    const after = all.length === 0 ? '' : `&after=${all.at(-1)?.id ?? ''}`;
    const { body } = await apiOf(service, key)('get', `/billing/transactions?order=asc&limit=3${after}`);
    all.push(...(body.data as Transaction[]));
    if (body.has_more !== true) return all;
  }
}

export async function balanceOf(service: TestService, { key }: TestTenant): Promise<number> {
  const { body } = await apiOf(service, key)('get', '/billing');
  return body.balance as number;
}

/** Waits for this many entries. Each has the running sum, and the last one's is the balance. */
export async function expectRunningBalance(service: TestService, tenant: TestTenant, count: number): Promise<void> {
  const all = await waitFor(async () => {
    const booked = await transactionsOf(service, tenant);
    return booked.length >= count ? booked : undefined;
  }, `${count} ledger entries`);
  let sum = 0;
  const running = all.map(({ credits }) => (sum += credits));
  expect(all.map(({ balance_after: after }) => after)).toEqual(running);
  expect(all).toHaveLength(count);
  expect(await balanceOf(service, tenant)).toBe(sum);
  const account = await service.models.accounts.findById(tenant.tenantId).lean();
  expect(account?.balanceMicro).toBe(sum * 1_000_000);
}
