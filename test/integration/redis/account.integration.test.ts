import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { monthOf } from '../../../shared/domain/pricing.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { openLedgerLab } from '../../support/ledger-lab.ts';
import type { LedgerLab } from '../../support/ledger-lab.ts';
import { endingOf, FAILED, needs, openRequestLab, RATE, SHARD } from '../../support/request-lab.ts';
import type { RequestLab } from '../../support/request-lab.ts';

const MONTH = monthOf(Date.now());

let lab: RequestLab;
beforeAll(async () => {
  lab = await openRequestLab();
});
afterAll(async () => {
  await lab.close();
});

const publish = ({ tenantId }: Principal, version: number, credits: number, settled: string[] = []) =>
  lab.accounts.publishBalance(SHARD, tenantId, { version, balanceMicro: credits * RATE, tokensByMonth: {} }, settled);

/** book, pending, held and what is left to spend, in credits. */
async function numbers(principal: Principal): Promise<[number, number, number, number]> {
  const { ledgerMicro = NaN, pendingMicro, heldMicro } = await lab.figures(principal);
  return [ledgerMicro / RATE, pendingMicro / RATE, heldMicro / RATE, (ledgerMicro - pendingMicro - heldMicro) / RATE];
}

describe('the three numbers of a balance', () => {
  it('add up at every step of a request that is answered', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    expect(await numbers(principal)).toEqual([1_000, 0, 0, 1_000]);

    const request = await lab.admit({ principal, promptTokens: 10, maxTokens: 90 });
    expect(await numbers(principal)).toEqual([1_000, 0, 100, 900]);
    await lab.run(request, 1);
    await lab.requests.renew(request.ref(1), needs(150));
    expect(await numbers(principal)).toEqual([1_000, 0, 150, 850]);
    await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hi', { prompt: 12, completion: 30 }));
    expect(await numbers(principal)).toEqual([1_000, 42, 0, 958]);
    await publish(principal, 2, 958, [request.requestId]);
    expect(await numbers(principal)).toEqual([958, 0, 0, 958]);
  });

  it('come back to where they were after a request that is taken back or fails', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    const [lost, failed] = [await lab.admit({ principal }), await lab.admit({ principal })];
    await lab.run(failed, 1);

    await lab.admissions.void(lost.requestId, principal);
    await lab.requests.finish(failed.ref(1), 0, FAILED);

    expect(await numbers(principal)).toEqual([1_000, 0, 0, 1_000]);
  });

  it('the three numbers of a balance add up among many requests at once', async () => {
    const principal = await lab.tenant(100_000 * RATE);
    const requests = await Promise.all(Array.from({ length: 60 }, () => lab.admit({ principal, maxTokens: 90 })));
    expect(await numbers(principal)).toEqual([100_000, 0, 6_000, 94_000]);

    await Promise.all(
      requests.map(async (request, index) => {
        if (index % 3 === 0) return lab.admissions.void(request.requestId, principal);
        await lab.run(request, 1);
        const answer = endingOf(request, 'Hi', { prompt: 12, completion: 30 });
        return lab.requests.finish(request.ref(1), 0, index % 3 === 1 ? answer : FAILED);
      }),
    );

    expect(await numbers(principal)).toEqual([100_000, 20 * 42, 0, 100_000 - 20 * 42]);
  });
});

describe('publishing the book', () => {
  it('never replaces a book by an older one, or one of the same version', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    await publish(principal, 5, 700);

    await publish(principal, 4, 900);
    await publish(principal, 5, 800);
    expect(await numbers(principal)).toEqual([700, 0, 0, 700]);

    await publish(principal, 6, 650);
    expect(await numbers(principal)).toEqual([650, 0, 0, 650]);
  });

  it('settles a charge with an older book too, since a newer one has it already', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    const request = await lab.admit({ principal });
    await lab.run(request, 1);
    await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hi', { prompt: 12, completion: 30 }));
    // A grant of 500 was booked after the settlement and published before it.
    await publish(principal, 3, 1_458);
    expect(await numbers(principal)).toEqual([1_458, 42, 0, 1_416]);

    await publish(principal, 2, 958, [request.requestId]);

    expect(await numbers(principal)).toEqual([1_458, 0, 0, 1_458]);
  });

  it('publishing the book changes nothing when it is sent twice', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    const requests = [await lab.admit({ principal }), await lab.admit({ principal })];
    for (const request of requests) {
      await lab.run(request, 1);
      await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hi', { prompt: 12, completion: 30 }));
    }
    const settled = requests.slice(0, 1).map(({ requestId }) => requestId);

    await publish(principal, 2, 958, settled);
    const before = await lab.snapshot();
    await publish(principal, 2, 958, [...settled, ...settled]);

    expect(await lab.snapshot()).toEqual(before);
    expect(await numbers(principal)).toEqual([958, 42, 0, 916]);
  });

  it('takes a charge off once that is named twice', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    const request = await lab.admit({ principal });
    await lab.run(request, 1);
    await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hi', { prompt: 12, completion: 30 }));

    await publish(principal, 2, 958, [request.requestId, request.requestId]);

    expect(await numbers(principal)).toEqual([958, 0, 0, 958]);
  });

  it('moves the month’s tokens from pending to used', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    const request = await lab.admit({ principal });
    await lab.run(request, 1);
    await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hi', { prompt: 12, completion: 30 }));
    expect((await lab.figures(principal)).budgetUsedTokens).toBe(42);

    const book = { version: 2, balanceMicro: 958 * RATE, tokensByMonth: { '202001': 9_000, [MONTH]: 42 } };
    await lab.accounts.publishBalance(SHARD, principal.tenantId, book, [request.requestId]);

    expect((await lab.figures(principal)).budgetUsedTokens).toBe(42);
    expect((await lab.accounts.read(SHARD, principal.tenantId, '202001')).budgetUsedTokens).toBe(9_000);
  });

  it('knows no balance where none was published', async () => {
    expect(await lab.accounts.read(SHARD, 'ten_unknown', MONTH)).toEqual({
      ledgerMicro: undefined,
      pendingMicro: 0,
      heldMicro: 0,
      budgetUsedTokens: 0,
      budgetHeldTokens: 0,
    });
  });
});

describe('the account in MongoDB', () => {
  let book: LedgerLab;
  beforeAll(async () => {
    book = await openLedgerLab();
  });
  afterAll(async () => {
    await book.close();
  });

  it('opens once with nothing in it, and opening it again leaves it alone', async () => {
    await book.accounts.open('ten_new');
    expect(await book.accounts.read('ten_new')).toEqual({ balanceMicro: 0, version: 0, tokensByMonth: {} });
    const entry = { tenantId: 'ten_new', type: 'grant', amountMicro: 5, reason: 'welcome', now: 1 } as const;
    const { book: booked } = await book.accounts.book(entry);

    await book.accounts.open('ten_new');

    expect(await book.accounts.read('ten_new')).toEqual(booked);
    expect(await book.accounts.read('ten_unknown')).toBeUndefined();
  });

  it('books entry and balance together or neither', async () => {
    const entry = { tenantId: 'ten_none', type: 'grant', amountMicro: 5, reason: 'welcome', now: 1 } as const;

    await expect(book.accounts.book(entry)).rejects.toThrow('Tenant ten_none has no account');

    expect(await book.models.ledger.countDocuments({ tenantId: 'ten_none' })).toBe(0);
  });

  it('counts every one of many bookings at the same time', async () => {
    const tenantId = await book.tenant(100);
    const amounts = [7, -3, 20, -1, 5, 5, -40, 2];

    await Promise.all(
      amounts.map((amountMicro) =>
        book.accounts.book({ tenantId, type: 'adjustment', amountMicro, reason: 'test', now: 1 }),
      ),
    );

    expect(await book.balanceOf(tenantId)).toEqual({ account: 95, ledger: 95 });
    expect((await book.accounts.read(tenantId))?.version).toBe(1 + amounts.length);
  });
});
