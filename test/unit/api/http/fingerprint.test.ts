import { createHash } from 'node:crypto';

import { expect, it } from '@jest/globals';

import { idempotencyOf } from '../../../../api/http/request-terms.ts';

const SPACE = { tenantId: 'ten_1', mode: 'live' } as const;

it('lets others run while it is made of a large body, and depends on every unit of it', async () => {
  // A pair lies across every second cut, whatever stands before it.
  const body = { text: `a${'😀"'.repeat(3_000_000)}` };
  let turns = 0;
  const counting = setInterval(() => (turns += 1), 0);

  const { fingerprint } = await idempotencyOf(SPACE, 'chat', 'key', body);

  clearInterval(counting);
  // Keys of the last day know their bodies by this.
  const whole = JSON.stringify([JSON.stringify(body)]);
  expect(fingerprint).toBe(createHash('sha256').update(whole).digest('base64url'));
  expect(turns).toBeGreaterThan(4);
});
