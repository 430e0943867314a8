import type { Connection } from 'mongoose';

import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { createAccountRepository } from '../../shared/mongo/accounts/account-repository.ts';
import type { AccountRepository } from '../../shared/mongo/accounts/account-repository.ts';
import { connectMongo } from '../../shared/mongo/connection.ts';
import { createModels, prepareDatabase } from '../../shared/mongo/administration/catalogue.ts';
import type { Models } from '../../shared/mongo/administration/catalogue.ts';
import { createReconciliationRepository } from '../../shared/mongo/accounts/reconciliation-repository.ts';
import type { ReconciliationRepository } from '../../shared/mongo/accounts/reconciliation-repository.ts';
import type { LedgerRow } from '../../shared/mongo/accounts/ledger-repository.ts';
import { createSettlementRepository } from '../../shared/mongo/accounts/settlement-repository.ts';
import type { SettlementRepository } from '../../shared/mongo/accounts/settlement-repository.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { createRecordingLog } from './recording-log.ts';
import { mongoUri, openTestMongo, uniqueName } from './stores.ts';

/** The book in a database of its own. */
export interface LedgerLab {
  connection: Connection;
  models: Models;
  ledger: SettlementRepository;
  accounts: AccountRepository;
  reconciliation: ReconciliationRepository;
  /** The repository over another way to the same database, such as a proxy's port. */
  ledgerThrough(port: number): Promise<SettlementRepository>;
  /** A tenant's account with a grant in its ledger. */
  tenant(grantMicro: number): Promise<string>;
  usageOf(tenantId: string): Promise<LedgerRow[]>;
  /** The balance as the account has it, and as the ledger adds up; the two must never differ. */
  balanceOf(tenantId: string): Promise<{ account: number; ledger: number }>;
  /** What the roll-ups of a tenant add up to, by width and scope: six sums that must all say what the ledger says. */
  rolledUp(tenantId: string): Promise<UsageSum[]>;
  close(): Promise<void>;
}

interface UsageSum {
  requests: number;
  tokens: number;
  costMicro: number;
}

/** Before everything that a test books: entries keep the order of booking. */
const GRANTED_AT = Date.UTC(2026, 0, 1);

/** What a finished request owes. */
export function recordOf(tenantId: string, more: Partial<SettlementRecord> = {}): SettlementRecord {
  return {
    requestId: newId('req'),
    tenantId,
    keyId: newId('key'),
    mode: 'live',
    tier: 'mobius',
    endpoint: 'chat',
    provider: 'simulated',
    model: 'sim',
    promptTokens: 10,
    completionTokens: 20,
    estimated: false,
    costMicro: 30_000_000,
    finishReason: 'stop',
    acceptedAt: Date.UTC(2026, 10, 21, 12),
    finishedAt: Date.UTC(2026, 10, 21, 12, 0, 1),
    ...more,
  };
}

export async function openLedgerLab(): Promise<LedgerLab> {
  const name = uniqueName('book');
  await prepareDatabase(mongoUri(name), createRecordingLog());
  const connection = await openTestMongo(name);
  const others: Connection[] = [];
  const models = createModels(connection);
  const accounts = createAccountRepository(connection);
  return {
    connection,
    models,
    accounts,
    reconciliation: createReconciliationRepository(connection),
    ledger: createSettlementRepository(connection),
    async ledgerThrough(port) {
      const url = new URL(mongoUri(name));
      url.port = String(port);
      const other = await connectMongo(url.href, { callTimeoutMs: 2_000 });
      others.push(other);
      return createSettlementRepository(other);
    },
    async tenant(grantMicro) {
      const tenantId = newId('ten');
      await accounts.open(tenantId);
      await accounts.book({ tenantId, type: 'grant', amountMicro: grantMicro, reason: 'test', now: GRANTED_AT });
      return tenantId;
    },
    usageOf: (tenantId) => models.ledger.find({ tenantId, type: 'usage' }).lean(),
    async balanceOf(tenantId) {
      const account = await models.accounts.findById(tenantId).lean();
      const rows = await models.ledger.find({ tenantId }).lean();
      return { account: account?.balanceMicro ?? NaN, ledger: rows.reduce((sum, row) => sum + row.amountMicro, 0) };
    },
    async rolledUp(tenantId) {
      const sums = new Map<string, UsageSum>();
      for (const row of await models.usageRollUps.find({ tenantId }).lean()) {
        const name = `${row.width} ${row.scope}`;
        const sum = sums.get(name) ?? { requests: 0, tokens: 0, costMicro: 0 };
        sums.set(name, sum);
        sum.requests += row.requests;
        sum.tokens += row.promptTokens + row.completionTokens;
        sum.costMicro += row.costMicro;
      }
      return [...sums.values()];
    },
    async close() {
      for (const other of others) await other.close();
      await connection.close();
    },
  };
}
