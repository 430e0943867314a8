import { describe, expect, it } from '@jest/globals';

import { openAdmissionLab } from '../../support/admission-lab.ts';
import { moveUse } from '../../support/use-window.ts';
import { useStarted } from '../../support/use-service.ts';

const MINUTE_MS = 60_000;

const lab = useStarted('lab', openAdmissionLab);

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
