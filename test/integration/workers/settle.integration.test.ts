import { describe, expect, it } from '@jest/globals';

import { openLedgerLab, recordOf } from '../../support/ledger-lab.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const NOW = Date.UTC(2026, 10, 21, 13);
const GRANT = 1_000_000_000;

const book = useStarted('book', openLedgerLab);

describe('booking a batch', () => {
  it('writes what the request was into its ledger entry', async () => {
    const tenantId = await book.tenant(GRANT);
    const record = recordOf(tenantId, { entityId: 'pupil-7', estimated: true, finishReason: 'length' });

    await book.ledger.settle([record], NOW);

    const { requestId, keyId, provider, model, promptTokens, completionTokens, acceptedAt } = record;
    expect(await book.usageOf(tenantId)).toEqual([
      {
        _id: requestId.replace('req_', 'txn_'),
        type: 'usage',
        amountMicro: -record.costMicro,
        balanceAfterMicro: GRANT - record.costMicro,
        createdAt: NOW,
        mode: 'live',
        endpoint: 'chat',
        tier: 'mobius',
        entityId: 'pupil-7',
        estimated: true,
        finishReason: 'length',
        ...{ tenantId, requestId, keyId, provider, model, promptTokens, completionTokens, acceptedAt },
      },
    ]);
  });

  it('adds the request to the usage of its minute, hour and day, with and without its entity', async () => {
    const tenantId = await book.tenant(GRANT);
    const record = recordOf(tenantId, { entityId: 'pupil 7', costMicro: 5 });
    await book.ledger.settle([record], NOW);
    await book.ledger.settle([recordOf(tenantId, { keyId: record.keyId, costMicro: 6 })], NOW);

    const rows = await book.models.usageRollUps.find({ tenantId, width: '1h' }).sort({ scope: 1, entityId: 1 }).lean();
    const startMs = Date.UTC(2026, 10, 21, 12);
    expect(rows).toMatchObject([
      { scope: 'all', entityId: '', startMs, requests: 2, promptTokens: 20, completionTokens: 40, costMicro: 11 },
      { scope: 'entity', entityId: '', startMs, requests: 1, costMicro: 6 },
      { scope: 'entity', entityId: 'pupil 7', startMs, requests: 1, costMicro: 5 },
    ]);
    expect(await book.models.usageRollUps.distinct('width', { tenantId, expiresAt: { $exists: true } })).toEqual([
      '1m',
    ]);
  });

  it('counts the tokens of live requests by the month of acceptance', async () => {
    const tenantId = await book.tenant(GRANT);
    const october = Date.UTC(2026, 9, 31, 23, 59, 59);

    const books = await book.ledger.settle(
      [
        recordOf(tenantId, { acceptedAt: october }),
        recordOf(tenantId),
        recordOf(tenantId, { mode: 'test', costMicro: 0 }),
      ],
      NOW,
    );

    expect(books.get(tenantId)?.tokensByMonth).toEqual({ '202610': 30, '202611': 30 });
  });
});

describe('booking the same request again', () => {
  it('begins with a read, so that a batch which reaches MongoDB late locks no account', async () => {
    const path = await openTcpProxy(mongoUri('unused'));
    const ledger = await book.ledgerThrough(path.port);
    const tenantId = await book.tenant(GRANT);
    const commands: string[] = [];
    path.failCommands((command) => {
      commands.push(command);
      return undefined;
    });

    await ledger.settle([recordOf(tenantId), recordOf(tenantId)], NOW);
    await path.close();

    // What is known, account, entries, usage.
    expect(commands).toEqual(['find', 'findAndModify', 'insert', 'update', 'commitTransaction']);
  });

  it('changes nothing, not even the version, when all of it is known', async () => {
    const tenantId = await book.tenant(GRANT);
    const records = [recordOf(tenantId), recordOf(tenantId)];
    const before = (await book.ledger.settle(records, NOW)).get(tenantId);

    expect((await book.ledger.settle(records, NOW + 1)).get(tenantId)).toEqual(before);
  });

  it('charges once when two leaders book the same batch at the same time', async () => {
    const tenantId = await book.tenant(GRANT);
    const records = Array.from({ length: 20 }, () => recordOf(tenantId));

    // One of them may be refused; it would find everything known on its next round.
    const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => book.ledger.settle(records, NOW)));

    expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true);
    expect(await book.usageOf(tenantId)).toHaveLength(20);
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 600_000_000, ledger: GRANT - 600_000_000 });
  });
});

describe('a batch among other changes of the same account', () => {
  it('tries again what conflicts, so that every change counts', async () => {
    const tenantId = await book.tenant(GRANT);
    const grant = () => book.accounts.book({ tenantId, type: 'grant', amountMicro: 7, reason: 'test', now: NOW });

    await Promise.all(
      Array.from({ length: 10 }, () => [
        grant(),
        book.ledger.settle([recordOf(tenantId, { costMicro: 11 })], NOW),
      ]).flat(),
    );

    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 40, ledger: GRANT - 40 });
  });

  it('books nothing at all when one of its records has no account', async () => {
    const tenantId = await book.tenant(GRANT);

    await expect(book.ledger.settle([recordOf(tenantId), recordOf('ten_unknown')], NOW)).rejects.toThrow(/account/);

    expect(await book.usageOf(tenantId)).toEqual([]);
    expect(await book.usageOf('ten_unknown')).toEqual([]);
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT, ledger: GRANT });
  });
});
