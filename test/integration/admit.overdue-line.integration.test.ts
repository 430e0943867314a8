import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { openAdmissionLab } from '../support/admission-lab.ts';
import type { AdmissionLab, LabKey } from '../support/admission-lab.ts';

/** A second leaves the window only whole. */
const GONE_MS = 61_000;
const NEXT_LINE_MS = 180_000;
const LIMITS = { tpm: 1_000 };

let lab: AdmissionLab;
let key: LabKey;
beforeAll(async () => {
  lab = await openAdmissionLab();
});
afterAll(async () => {
  await lab.close();
});
beforeEach(async () => {
  key = await lab.key();
});

const verdictOf = async (asked: ReturnType<LabKey['admitWith']>) => (await asked).verdict;
const chat = (tokens: number) => verdictOf(key.admitWith(LIMITS, { countedTokens: tokens }));

/** Lines may fill 800 of the 1,000 tokens. */
function line(name: string, tokens: number, isOverdue = true): Promise<string> {
  const requestId = `${name}_${key.principal.keyId}`;
  return verdictOf(key.admitWith(LIMITS, { requestId, queue: 'batch', countedTokens: tokens, isOverdue }));
}

/** A minute of short chat, every 5 s, and the line asked for each time; returns when it was admitted, in seconds. */
async function chatUntil(requestId: string, tokens: number, isOverdue: boolean, minutes: number) {
  let refused = 0;
  for (let second = 0; second < minutes * 60; second += 5) {
    if ((await line(requestId, tokens, isOverdue)) === 'admitted') return { second, refused };
    if ((await chat(10)) !== 'admitted') refused += 1;
    await key.pass(5_000);
  }
  return undefined;
}

describe('a line that has waited long for its key’s tokens', () => {
  it.each([700, 790])('of %d tokens is admitted behind short chat, where it would else never be', async (tokens) => {
    await chat(120);
    expect(await chatUntil('req_line', tokens, false, 10)).toBeUndefined();

    const admitted = await chatUntil('req_line', tokens, true, 3);

    expect(admitted?.second).toBeLessThanOrEqual(70);
  });

  it('counts in the figures of the key: nobody else can have what is kept', async () => {
    await chat(200);
    expect(await line('req_line', 650)).toBe('tpm');
    expect(await key.admitWith(LIMITS, { countedTokens: 50 })).toMatchObject({ verdict: 'admitted', tokens: 900 });
    expect(await key.admitWith(LIMITS, { countedTokens: 101 })).toMatchObject({ verdict: 'tpm', tokens: 900 });
    expect((await lab.store.count('req_look', key.principal, false)).tokens).toBe(900);
  });

  it('has the window said to be empty no sooner than its tokens may be had', async () => {
    await chat(900);
    await key.pass(GONE_MS - 5_000);
    expect(await line('req_line', 650)).toBe('tpm');
    await key.pass(5_000);

    const { tokens, tokensResetMs } = await lab.store.count('req_look', key.principal, false);
    expect([tokens, tokensResetMs]).toEqual([650, 10_000]);
  });

  it('leaves other requests what it does not need itself, and never passes the limit with them', async () => {
    await chat(300);
    expect(await line('req_line', 700)).toBe('tpm');
    // Of the 1,000 there are 300 in the window and 700 kept.
    expect(await chat(1)).toBe('tpm');
    await key.pass(30_000);
    expect(await line('req_line', 700)).toBe('tpm');
    await key.pass(GONE_MS - 30_000);
    expect(await line('req_line', 700)).toBe('admitted');
    expect(await chat(300)).toBe('admitted');
    expect(await chat(1)).toBe('tpm');
  });

  it('has the whole limit only once all in the window was admitted beside it', async () => {
    await chat(250);
    await line('req_line', 700);
    // 950 are less than the limit, but other lines may have them.
    expect(await line('req_line', 700)).toBe('tpm');
    for (let passed = 0; passed < GONE_MS; passed += 5_000) {
      await key.pass(5_000);
      await line('req_line', 900);
    }
    await chat(100);
    expect(await line('req_line', 900)).toBe('admitted');
  });

  it('keeps them from other lines, too, and has them for itself', async () => {
    await chat(500);
    await line('req_line', 500);
    expect(await line('req_other', 200, false)).toBe('tpm');
    expect(await line('req_other', 200)).toBe('tpm');
    expect(await line('req_line', 300)).toBe('admitted');
  });

  it('loses them when nobody asks for it any more', async () => {
    await chat(500);
    await line('req_line', 500);
    expect(await chat(100)).toBe('tpm');
    await key.pass(11_000);
    expect(await chat(100)).toBe('admitted');
  });

  it('is not followed by another one for three minutes, either, where it was not admitted', async () => {
    await chat(500);
    await line('req_line', 500);
    await key.pass(11_000);
    await line('req_next', 500);
    expect(await chat(100)).toBe('admitted');
    await key.pass(NEXT_LINE_MS);
    await chat(500);
    await line('req_next', 500);
    expect(await chat(100)).toBe('tpm');
  });

  it('is the only one in three minutes', async () => {
    await chat(500);
    await line('req_line', 500);
    await key.pass(GONE_MS);
    expect(await line('req_line', 500)).toBe('admitted');
    expect(await line('req_next', 500)).toBe('tpm');
    expect(await chat(400)).toBe('admitted');
    await key.pass(NEXT_LINE_MS);
    await chat(500);
    await line('req_next', 500);
    expect(await chat(100)).toBe('tpm');
  });
});
