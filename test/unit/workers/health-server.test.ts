import type { AddressInfo } from 'node:net';

import { afterEach, expect, it } from '@jest/globals';

import type { MetricsAccess } from '../../../shared/infra/metrics/metrics-access.ts';
import { createHealthServer } from '../../../workers/health-server.ts';

const TOKEN = 'scrape-0123456789abcdef0123456789abcdef';
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** The status of `/metrics` as a caller behind a proxy sees it. */
async function statusFor(access: MetricsAccess, headers: Record<string, string>): Promise<number> {
  const check = () => Promise.resolve({ ready: true, checks: {} });
  const worker = {
    readiness: { check, details: check },
    metrics: { contentType: 'text/plain', render: () => Promise.resolve('up 1\n') },
  };
  const server = createHealthServer(() => worker, access);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).status;
}

const FORWARDED = { 'X-Forwarded-For': '203.0.113.9' };

it('opens the metrics of a worker to this machine, to the token and, if so set, to all', async () => {
  const closed = { isPublic: false, token: TOKEN };

  expect(await statusFor(closed, {})).toBe(200);
  expect(await statusFor(closed, FORWARDED)).toBe(401);
  expect(await statusFor(closed, { ...FORWARDED, Authorization: 'Bearer wrong' })).toBe(401);
  expect(await statusFor(closed, { ...FORWARDED, Authorization: `Bearer ${TOKEN}` })).toBe(200);
  expect(await statusFor({ isPublic: true }, FORWARDED)).toBe(200);
});

it('opens them to no token where none is set', async () => {
  expect(await statusFor({ isPublic: false }, { ...FORWARDED, Authorization: 'Bearer ' })).toBe(401);
});
