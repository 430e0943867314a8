import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { fill, openAdmissionLab } from '../../support/admission-lab.ts';
import type { AdmissionLab } from '../../support/admission-lab.ts';
import { moveUse } from '../../support/use-window.ts';

const MINUTE_MS = 60_000;
/** What a slow machine may take between two calls. */
const SLACK_MS = 5_000;

let lab: AdmissionLab;
beforeAll(async () => {
  lab = await openAdmissionLab();
});
afterAll(async () => {
  await lab.close();
});

describe('the requests of a minute', () => {
  it('are admitted up to the limit, and not one more', async () => {
    const key = await lab.key();

    const { admitted, refused } = await fill(() => key.admitWith({ rpm: 7 }));

    expect(admitted).toBe(7);
    expect(refused).toMatchObject({ verdict: 'rpm', requests: 7 });
  });

  it('are counted exactly when 200 come at once', async () => {
    const key = await lab.key();

    const answers = await Promise.all(Array.from({ length: 200 }, () => key.admitWith({ rpm: 60 })));

    expect(answers.filter(({ verdict }) => verdict === 'admitted')).toHaveLength(60);
  });

  it('never exceed the limit in any true minute, however they arrive', async () => {
    const key = await lab.key();
    const limit = 5;
    const accepted: number[] = [];
    let passed = 0;
    // Steps and bursts of a fixed sequence without a period in common with the minute.
    for (let step = 1; step <= 60; step += 1) {
      const wait = (step * 7_919) % 19_000;
      await key.pass(wait);
      passed += wait;
      for (let burst = 0; burst < (step % 4) + 1; burst += 1) {
        const { verdict, now } = await key.admitWith({ rpm: limit });
        if (verdict === 'admitted') accepted.push(now + passed);
      }
    }
    const worst = Math.max(
      ...accepted.map((from) => accepted.filter((at) => at >= from && at < from + MINUTE_MS).length),
    );
    expect(worst).toBe(limit);
    expect(accepted.length).toBeGreaterThan(20);
  });

  it('leave a place after Retry-After, and none before', async () => {
    const key = await lab.key();
    await key.admitWith({ rpm: 3 });
    await key.pass(20_000);
    await key.admitWith({ rpm: 3 });
    await key.admitWith({ rpm: 3 });
    const { retryAfterMs, verdict } = await key.admitWith({ rpm: 3 });
    expect(verdict).toBe('rpm');
    expect(retryAfterMs).toBeGreaterThan(40_000 - SLACK_MS);
    expect(retryAfterMs).toBeLessThanOrEqual(40_000);

    await key.pass(retryAfterMs - SLACK_MS);
    expect((await key.admitWith({ rpm: 3 })).verdict).toBe('rpm');
    await key.pass(SLACK_MS);
    expect((await key.admitWith({ rpm: 3 })).verdict).toBe('admitted');
    expect((await key.admitWith({ rpm: 3 })).verdict).toBe('rpm');
  });

  it('that were more than a lowered limit allows leave a place only when enough of them have left', async () => {
    const key = await lab.key();
    for (let count = 0; count < 4; count += 1) {
      await key.admit();
      await key.pass(10_000);
    }

    const { retryAfterMs } = await key.admitWith({ rpm: 2 });

    // Ages 40, 30, 20 and 10 s: three must leave for one of two places.
    expect(retryAfterMs).toBeGreaterThan(40_000 - SLACK_MS);
    expect(retryAfterMs).toBeLessThanOrEqual(40_000);
    await key.pass(retryAfterMs);
    expect((await key.admitWith({ rpm: 2 })).verdict).toBe('admitted');
  });

  it('say when the window will be empty: at least a moment while anything is in it', async () => {
    const key = await lab.key();
    const first = await key.admit();
    expect(first.requestsResetMs).toBe(MINUTE_MS);

    // Tokens leave by the second, and a second only whole.
    await key.pass(MINUTE_MS + 1_000);
    const empty = await lab.store.count('req_look', key.principal, false);
    expect(empty).toMatchObject({ requests: 0, requestsResetMs: 0, tokens: 0, tokensResetMs: 0 });
  });
});

describe('what is kept of the last minute', () => {
  it('goes by itself when the key is used no more', async () => {
    const key = await lab.key();
    await key.admitWith({ chatRpm: 9, dailyRequests: 9 });

    const { keyId } = key.principal;
    const { keyRpm, throttle, tokenWindow, daily } = lab.keys;
    for (const name of [keyRpm(keyId), throttle('chat', keyId), tokenWindow(keyId), daily(keyId)])
      expect(await lab.redis.pttl(name)).toBeGreaterThan(2 * MINUTE_MS);
  });

  it('is trimmed once a minute, and lives on while the key is used', async () => {
    const key = await lab.key();
    const { keyId } = key.principal;
    const log = lab.keys.keyRpm(keyId);
    for (let count = 0; count < 3; count += 1) await key.admit();
    await key.pass(MINUTE_MS / 2);
    await key.admit();
    await key.pass(MINUTE_MS / 2);
    expect(await key.admit()).toMatchObject({ requests: 2 });
    expect(await lab.redis.zcard(log)).toBe(5);

    // As if it had been trimmed a minute ago, and not since.
    await lab.redis.hset(lab.keys.tokenWindow(keyId), 'kept', Date.now() - 2 * MINUTE_MS);
    for (const name of [log, lab.keys.tokenWindow(keyId)]) await lab.redis.pexpire(name, 2 * MINUTE_MS);
    // It is looked at once a second.
    await moveUse(lab.redis, lab.keys.tokenWindow(keyId), 1);
    await key.admit();

    expect(await lab.redis.zcard(log)).toBe(3);
    for (const name of [log, lab.keys.tokenWindow(keyId)])
      expect(await lab.redis.pttl(name)).toBeGreaterThan(2.5 * MINUTE_MS);
  });
});

describe('the logs of a key', () => {
  it.each([
    ['a line of a batch', { queue: 'batch' }],
    ['a request of the other endpoint', { endpoint: 'chat' }],
  ] as const)('live on where %s comes first in each second', async (_what, first) => {
    const key = await lab.key();
    const { keyId } = key.principal;
    const limits = { chatRpm: 9, streamRpm: 9, rpm: 100 };
    await key.admitWith(limits, { endpoint: 'chat.stream' });
    const { keyRpm, throttle, tokenWindow } = lab.keys;
    const logs = [keyRpm(keyId), throttle('chat.stream', keyId)];

    // As if they had been given longer to live more than a minute ago, and not since.
    for (const name of logs) await lab.redis.pexpire(name, MINUTE_MS);
    await lab.redis.hset(tokenWindow(keyId), 'kept', Date.now() - 2 * MINUTE_MS);
    await moveUse(lab.redis, tokenWindow(keyId), 1);
    await key.admitWith(limits, first);
    await key.admitWith(limits, { endpoint: 'chat.stream' });

    for (const name of logs) expect(await lab.redis.pttl(name)).toBeGreaterThan(2.5 * MINUTE_MS);
  });
});

describe('the throttles of the two endpoints', () => {
  it('are apart from each other and from the key’s rpm', async () => {
    const key = await lab.key();
    const limits = { chatRpm: 3, streamRpm: 2, rpm: 100 };

    const chat = await fill(() => key.admitWith(limits, { endpoint: 'chat' }));
    const stream = await fill(() => key.admitWith(limits, { endpoint: 'chat.stream' }));

    expect([chat.admitted, chat.refused.verdict]).toEqual([3, 'throttle']);
    expect([stream.admitted, stream.refused.verdict]).toEqual([2, 'throttle']);
    expect(stream.refused.requests).toBe(5);
  });

  it('and the rpm make the caller wait for the slower of them', async () => {
    const key = await lab.key();
    const limits = { rpm: 2, chatRpm: 1 };
    await key.admitWith(limits, { endpoint: 'chat.stream' });
    await key.pass(30_000);
    await key.admitWith(limits, { endpoint: 'chat' });

    const refused = await key.admitWith(limits, { endpoint: 'chat' });

    expect(refused.verdict).toBe('throttle');
    expect(refused.retryAfterMs).toBeGreaterThan(MINUTE_MS - SLACK_MS);
    await key.pass(refused.retryAfterMs);
    expect((await key.admitWith(limits, { endpoint: 'chat' })).verdict).toBe('admitted');
  });
});

describe('the requests of a day', () => {
  it('are unlimited at 0, and limited to the number else', async () => {
    const key = await lab.key();
    for (let count = 0; count < 5; count += 1) expect((await key.admit()).verdict).toBe('admitted');

    const { admitted, refused } = await fill(() => key.admitWith({ dailyRequests: 4 }));

    expect([admitted, refused.verdict]).toEqual([4, 'daily']);
  });

  it('leave a place after Retry-After, in minutes of a sliding day', async () => {
    const key = await lab.key();
    const limits = { dailyRequests: 2 };
    await key.admitWith(limits);
    await key.pass(5 * 3_600_000);
    await key.admitWith(limits);

    const { retryAfterMs, verdict } = await key.admitWith(limits);

    expect(verdict).toBe('daily');
    expect(retryAfterMs).toBeGreaterThan(19 * 3_600_000 - MINUTE_MS);
    expect(retryAfterMs).toBeLessThanOrEqual(19 * 3_600_000 + MINUTE_MS);
    await key.pass(retryAfterMs - 2 * MINUTE_MS);
    expect((await key.admitWith(limits)).verdict).toBe('daily');
    await key.pass(3 * MINUTE_MS);
    expect((await key.admitWith(limits)).verdict).toBe('admitted');
    expect((await key.admitWith(limits)).verdict).toBe('daily');
  });
});

describe('the requests of a day, of a server whose clock is put back,', () => {
  it('leave the day as those before and after them do', async () => {
    const key = await lab.key();
    const limits = { dailyRequests: 2 };
    await key.admitWith(limits);
    // The minute of the first is ahead now, and the second comes before it.
    await key.pass(-30 * MINUTE_MS);
    await key.admitWith(limits);
    expect((await key.admitWith(limits)).verdict).toBe('daily');

    await key.pass(26 * 60 * MINUTE_MS);

    for (let count = 0; count < 2; count += 1) expect((await key.admitWith(limits)).verdict).toBe('admitted');
  });
});

describe('failed authentications of an address', () => {
  it('are let through 60 times a minute', async () => {
    const address = '203.0.113.77';
    for (let count = 1; count <= 60; count += 1)
      expect(await lab.store.countAddress(`req_${String(count)}`, address)).toMatchObject({
        allowed: true,
        requests: count,
      });

    const refused = await lab.store.countAddress('req_61', address);

    expect(refused).toMatchObject({ allowed: false, requests: 60 });
    expect(refused.retryAfterMs).toBeGreaterThan(MINUTE_MS - 2 * SLACK_MS);
    expect((await lab.store.countAddress('req_x', '203.0.113.78')).allowed).toBe(true);
  });
});
