import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';

import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';

import { createCachedLookup, createTenantResolver } from '../../../shared/http/resolve-name.ts';
import { createWebhookClient } from '../../../shared/http/webhook-client.ts';

let silent: Socket;
let asked = 0;
let server: string;
beforeAll(async () => {
  silent = createSocket('udp4').on('message', () => {
    asked += 1;
  });
  await new Promise<void>((resolve) => silent.bind(0, '127.0.0.1', resolve));
  server = `127.0.0.1:${silent.address().port}`;
});
afterAll(() => {
  silent.close();
});

describe('a name server that never answers', () => {
  it('keeps no other look-up of the process waiting, however many names of tenants hang', async () => {
    const resolve = createTenantResolver({ allowLocalNames: true, servers: [server], limitMs: 2_000 });
    const client = createWebhookClient({ allowPrivate: true, resolve });
    const hanging = Array.from({ length: 64 }, (_, index) =>
      client.send(`https://receiver-${index}.example.com/`, {}, '{}'),
    );
    let isOver = false;
    const all = Promise.all(hanging).finally(() => {
      isOver = true;
    });

    expect((await lookup('localhost')).address).toMatch(/^(127\.0\.0\.1|::1)$/);

    expect(isOver).toBe(false);
    for (const { error } of await all) expect(error).toBe('The host name of the receiver could not be resolved.');
    expect(asked).toBeGreaterThanOrEqual(64);
  });

  it('a name server that never answers is not asked for names of loopback', async () => {
    const before = asked;
    const resolve = createTenantResolver({ allowLocalNames: false, servers: [server] });

    expect((await resolve('app.localhost')).map(({ address }) => address)).toEqual(['127.0.0.1', '::1']);
    expect(asked).toBe(before);
  });
});

describe("the look-up of providers' names", () => {
  const callOf = (found: ReturnType<typeof createCachedLookup>) =>
    new Promise((resolve) => {
      found('provider.example.com', { all: true }, (error, addresses) => {
        resolve(error === null ? addresses : error.message);
      });
    });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('asks once for calls at the same time, again after 30 s, and at once where it failed', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
    let calls = 0;
    let fails = false;
    const cached = createCachedLookup((host) => {
      calls += 1;
      return fails ? Promise.reject(new Error(`no ${host}`)) : Promise.resolve([{ address: '192.0.2.1', family: 4 }]);
    });
    const addresses = [{ address: '192.0.2.1', family: 4 }];

    expect(await Promise.all([callOf(cached), callOf(cached)])).toEqual([addresses, addresses]);
    expect(calls).toBe(1);
    jest.advanceTimersByTime(31_000);
    fails = true;
    expect(await callOf(cached)).toBe('no provider.example.com');
    fails = false;
    expect(await callOf(cached)).toEqual(addresses);
    expect(calls).toBe(3);
  });
});
