import { describe, expect, it } from '@jest/globals';

import { monthOf } from '../../../shared/domain/pricing.ts';
import { openLedgerLab } from '../../support/ledger-lab.ts';
import { endingOf, openRequestLab, RATE, SHARD } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const MONTH = monthOf(Date.now());

const lab = useStarted('lab', openRequestLab);

describe('publishing the book', () => {
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
});

describe('the account in MongoDB', () => {
  const book = useStarted('book', openLedgerLab);

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
});
