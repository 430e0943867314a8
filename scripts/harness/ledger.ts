import { setTimeout as pause } from 'node:timers/promises';

import { connectMongo } from '../../shared/mongo/connection.ts';
import { createModels } from '../../shared/mongo/administration/catalogue.ts';

/** What the ledger has booked for a tenant's requests. */
export interface LedgerSum {
  entries: number;
  /** Prompt plus completion. */
  tokens: number;
  /** Positive; micro-credits. */
  chargedMicro: number;
}

const TIMEOUT_MS = 30_000;
const POLL_MS = 200;

/** Reads the ledger directly from MongoDB, for checks that do not rely on the service. */
export async function openLedger(mongodbUri: string) {
  const connection = await connectMongo(mongodbUri);
  const { ledger } = createModels(connection);
  const usageOf = (tenantId: string) => ({ tenantId, type: 'usage' as const });
  return {
    /** Waits until the tenant has `expected` usage entries or the time is up; returns how many there are. */
    async waitFor(tenantId: string, expected: number, signal: AbortSignal): Promise<number> {
      const deadline = performance.now() + TIMEOUT_MS;
      for (;;) {
        const count = await ledger.countDocuments(usageOf(tenantId));
        if (count >= expected || performance.now() > deadline) return count;
        await pause(POLL_MS, undefined, { signal });
      }
    },
    async sum(tenantId: string): Promise<LedgerSum> {
      const rows = await ledger
        .find(usageOf(tenantId), { amountMicro: 1, promptTokens: 1, completionTokens: 1 })
        .lean();
      const sum = { entries: rows.length, tokens: 0, chargedMicro: 0 };
      for (const { promptTokens = 0, completionTokens = 0, amountMicro } of rows) {
        sum.tokens += promptTokens + completionTokens;
        sum.chargedMicro -= amountMicro;
      }
      return sum;
    },
    close: () => connection.close(),
  };
}
