import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { startRedis } from '../../../scripts/embedded/redis.ts';
import type { EmbeddedRedis } from '../../../scripts/embedded/redis.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import type { AdmissionLab, LabKey } from '../../support/admission-lab.ts';

const BODY = '{}';
const HOUR_MS = 3_600_000;

type Principal = NonNullable<Parameters<AdmissionLab['key']>[0]>;
const limitsWith = (more: Partial<NonNullable<Principal['limits']>>) => ({
  limits: { rpm: 10_000, tpm: 10_000_000, dailyRequests: 0, chatRpm: 10_000, streamRpm: 10_000, ...more },
});

/** A Redis of its own, so that nobody else's commands are counted (docs/decisions/0003-atomic-admission.md). */
describe('an admission runs in Redis no more than', () => {
  let dataDir: string;
  let server: EmbeddedRedis;
  let lab: AdmissionLab;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-admission-'));
    server = await startRedis({ dataDir, log: () => undefined });
    lab = await openAdmissionLab({ url: server.url });
  });
  afterAll(async () => {
    await lab.close();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** The commands inside the script. */
  async function commandsOf(act: () => Promise<unknown>): Promise<number> {
    await lab.redis.config('RESETSTAT');
    await act();
    const stats = (await lab.redis.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
    return [...stats]
      .filter(([, name = '']) => !['evalsha', 'config|resetstat', 'info'].includes(name))
      .reduce((sum, [, , calls]) => sum + Number(calls), 0);
  }

  const emptyLine = async () => {
    await lab.redis.del(lab.keys.prioritized('interactive'));
  };

  /** Not what a second costs that begins. */
  async function leastOf(act: () => Promise<unknown>, between = emptyLine): Promise<number> {
    let least = Infinity;
    for (let tries = 0; tries < 3; tries += 1) {
      least = Math.min(least, await commandsOf(act));
      await between();
    }
    return least;
  }

  const CASES: [most: number, what: string, as: Principal, asked: Parameters<LabKey['admit']>[0]][] = [
    [18, 'of an ordinary key', {}, {}],
    [18, 'of a tenant with ceilings', { ceilings: { rpm: 1_000, tpm: 1_000_000, inFlight: 1_000 } }, {}],
    [20, 'with a tighter throttle', limitsWith({ chatRpm: 9_000 }), {}],
    [20, 'with a daily limit', limitsWith({ dailyRequests: 9_000 }), {}],
    [19, 'under an Idempotency-Key', {}, { idempotency: { name: 'a name', fingerprint: 'a print' } }],
    [19, 'of a client that may try again', {}, { attempt: { name: 'a call', fingerprint: 'a print', isRetry: false } }],
    [21, 'of a test key', { mode: 'test' }, {}],
  ];
  it.each(CASES)('%d commands: %s', async (most, _what, as, asked) => {
    const key = await lab.key(as);
    // The first one of a key gives its windows their time to live.
    await key.admit({ body: BODY });
    await emptyLine();

    // Under one name the second would join the first.
    const more = () => (asked?.idempotency ? { idempotency: { ...asked.idempotency, name: newId('req') } } : {});
    expect(await leastOf(() => key.admit({ body: BODY, ...asked, ...more() }))).toBeLessThanOrEqual(most);
  });

  it('20 commands where a second begins', async () => {
    const key = await lab.key();
    await key.admit({ body: BODY });
    await emptyLine();
    await key.pass(2_000);
    expect(await commandsOf(() => key.admit({ body: BODY }))).toBeLessThanOrEqual(20);
    await emptyLine();
  });

  it('20 commands where others wait', async () => {
    const key = await lab.key();
    await key.admit({ body: BODY });
    expect(
      await leastOf(
        () => key.admit({ body: BODY }),
        () => Promise.resolve(),
      ),
    ).toBeLessThanOrEqual(20);
    await emptyLine();
  });

  it('10 commands for a refusal', async () => {
    const key = await lab.key(limitsWith({ rpm: 1 }));
    await key.admit({ body: BODY });
    await emptyLine();
    expect(await commandsOf(() => key.admit({ body: BODY }))).toBeLessThanOrEqual(10);
  });

  it('13 commands for a refusal of the day, however many empty minutes it has', async () => {
    const key = await lab.key(limitsWith({ dailyRequests: 3 }));
    // One has left the day, so that it begins with twelve hours in which nothing came.
    await key.admit({ body: BODY });
    await key.pass(13 * HOUR_MS);
    for (let count = 0; count < 2; count += 1) await key.admit({ body: BODY });
    await key.pass(12 * HOUR_MS);
    await key.admit({ body: BODY });
    await emptyLine();
    const refuse = async () => {
      expect((await key.admit({ body: BODY })).verdict).toBe('daily');
    };
    expect(await leastOf(refuse)).toBeLessThanOrEqual(13);
  });
});
