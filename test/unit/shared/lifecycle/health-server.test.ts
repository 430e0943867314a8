import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';

import { afterEach, expect, it } from '@jest/globals';

import type { MetricsAccess } from '../../../../shared/metrics/registry.ts';
import { createCloser } from '../../../../shared/lifecycle/closer.ts';
import { createHealthServer, openHealthServer } from '../../../../shared/lifecycle/health-server.ts';
import { freePort } from '../../../../scripts/embedded/ports.ts';

const TOKEN = 'scrape-0123456789abcdef0123456789abcdef';
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function start(access: MetricsAccess, headMs?: number): Promise<number> {
  const check = () => Promise.resolve({ ready: true, checks: {} });
  const worker = {
    readiness: { check, details: check },
    metrics: { contentType: 'text/plain', render: () => Promise.resolve('up 1\n') },
  };
  const server = createHealthServer(() => worker, access, headMs);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The status of `/metrics` as a caller behind a proxy sees it. */
async function statusFor(access: MetricsAccess, headers: Record<string, string>): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${await start(access)}/metrics`, { headers });
  expect(response.headers.get('www-authenticate')).toBe(response.status === 401 ? 'Bearer' : null);
  return response.status;
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

it.each(['/health/live', '/health/ready', '/metrics'])('answers GET and HEAD only: %s', async (path) => {
  const url = `http://127.0.0.1:${await start({ isPublic: true })}`;

  const refused = await fetch(url + path, { method: 'POST', body: '{}' });
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  const head = await fetch(url + path, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
  expect((await fetch(`${url}/nothing`, { method: 'POST' })).status).toBe(404);
});

it('cuts a head that comes slowly soon after its time', async () => {
  const port = await start({ isPublic: true }, 100);
  const begun = performance.now();

  await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /health/live HTTP/1.1\r\nHost: w'));
    socket.on('error', resolve).on('close', resolve).resume();
  });

  expect(performance.now() - begun).toBeLessThan(25_000);
});

it('is open from the start of a process until its end, and not at all on port 0', async () => {
  const closer = createCloser(() => undefined);
  const at = { port: await freePort(), host: '127.0.0.1', setting: 'METRICS_PORT' };
  await openHealthServer(at, { isPublic: true }, closer, () => undefined);
  await openHealthServer({ ...at, port: 0 }, { isPublic: true }, closer, () => undefined);

  const statuses = ['/health/live', '/health/ready', '/metrics'].map(
    async (path) => (await fetch(`http://127.0.0.1:${at.port}${path}`)).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 503, 503]);
  await closer.close();
  await expect(fetch(`http://127.0.0.1:${at.port}/health/live`)).rejects.toThrow('fetch failed');
});
