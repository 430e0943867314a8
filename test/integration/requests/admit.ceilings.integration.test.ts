import { beforeEach, describe, expect, it } from '@jest/globals';

import { LANE_LIMIT, fill, openAdmissionLab } from '../../support/admission-lab.ts';
import type { AdmissionLab, LabKey } from '../../support/admission-lab.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { useStarted } from '../../support/use-service.ts';

const NONE = { rpm: null, tpm: null, inFlight: null };
const BODY = '{}';

const lab = useStarted('lab', openAdmissionLab);

beforeEach(async () => {
  await lab.redis.del(lab.keys.prioritized('interactive'));
});

/** So many keys of one tenant. */
async function keysOfTenant(count: number, more: Parameters<AdmissionLab['key']>[0], balance?: number) {
  const tenantId = newId('ten');
  const keys: LabKey[] = [];
  for (let index = 0; index < count; index += 1) keys.push(await lab.key({ ...more, tenantId }, balance));
  return keys;
}

describe('a ceiling of a tenant', () => {
  it('of requests in flight does not count one whose record is gone', async () => {
    const key = await lab.key({ ceilings: { ...NONE, inFlight: 1 } });
    await key.admit({ requestId: 'req_gone' });
    await lab.redis.del(lab.keys.record('req_gone'));
    expect((await key.admit()).verdict).toBe('admitted');
  });
});

describe('the line of a queue', () => {
  it('has room for others when one tenant’s requests fill half of it', async () => {
    const [flood, other] = [await lab.key(), await lab.key()];
    const half = LANE_LIMIT / 2;

    expect(await fill(() => flood.admit({ body: BODY }))).toMatchObject({
      admitted: half,
      refused: { verdict: 'queue_share', requests: half + 1 },
    });
    expect((await other.admit({ body: BODY })).verdict).toBe('admitted');
  });

  it('counts what a worker has no longer', async () => {
    const flood = await lab.key();
    await fill(() => flood.admit({ body: BODY }));
    await lab.redis.zpopmin(lab.keys.prioritized('interactive'), 2);
    const { admitted } = await fill(() => flood.admit({ body: BODY }));
    expect(admitted).toBe(2);
  });
});

describe('the bodies of a tenant', () => {
  it('have 256 MiB together while they are open: a larger one is refused before another call can join it', async () => {
    const key = await lab.key();
    const idempotency = { name: newId('req'), fingerprint: 'f' };
    const [first, beyond] = [newId('req'), { largeBytes: 100 * 1024 * 1024, idempotency }];

    expect((await key.admit({ requestId: first, largeBytes: 200 * 1024 * 1024 })).verdict).toBe('admitted');
    expect((await key.admit(beyond)).verdict).toBe('bodies');
    expect((await key.admit(beyond)).verdict).toBe('bodies');
    expect((await key.admit()).verdict).toBe('admitted');

    await lab.store.void(first, key.principal);
    expect((await key.admit(beyond)).verdict).toBe('admitted');
  });
});

describe('the allowance of test keys', () => {
  it('does not let tiny requests take all places: they are in flight like others', async () => {
    const keys = await keysOfTenant(100, { mode: 'test', ceilings: { ...NONE, inFlight: 50 } }, 0);

    const answers = await Promise.all(keys.map((key) => key.admit({ promptTokens: 1, maxTokens: 1 })));

    expect(answers.filter(({ verdict }) => verdict === 'admitted')).toHaveLength(50);
  });
});
