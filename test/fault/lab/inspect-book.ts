import { connectMongo } from '../../../shared/mongo/connection.ts';
import { createModels } from '../../../shared/mongo/administration/catalogue.ts';
import { decodeEntry, kindsOf } from '../../../shared/contracts/events.ts';
import type { LedgerLine, StoredText } from '../checker/evidence.ts';
import { textOfEntries } from './text-of-entries.ts';

export interface Book {
  ledger: LedgerLine[];
  /** Balance in micro-credits by tenant. */
  balances: Map<string, number>;
  keptAnswers: StoredText[];
}

/** Reads the book itself in MongoDB, for checks that do not rely on the service. */
export async function inspectBook(mongodbUri: string): Promise<Book> {
  const connection = await connectMongo(mongodbUri);
  try {
    const { ledger, accounts, answers } = createModels(connection);
    const [lines, rows, kept] = await Promise.all([
      ledger.find({}).lean(),
      accounts.find({}).lean(),
      answers.find({}).lean(),
    ]);
    return {
      ledger: lines.map((line) => ({
        tenantId: line.tenantId,
        type: line.type,
        amountMicro: line.amountMicro,
        requestId: line.requestId,
        tier: line.tier,
        mode: line.mode,
        promptTokens: line.promptTokens ?? 0,
        completionTokens: line.completionTokens ?? 0,
        kinds: kindsOf(line),
        isEstimated: line.estimated ?? false,
        finishReason: line.finishReason,
      })),
      balances: new Map(rows.map(({ _id, balanceMicro }) => [_id, balanceMicro])),
      keptAnswers: kept.map(({ _id: requestId, entries }) => {
        const decoded = entries.map(({ lastSeq, payload }) => decodeEntry(lastSeq, payload));
        const terminal = decoded.find((entry) => entry.terminal !== undefined)?.terminal;
        return { requestId, text: textOfEntries(decoded), finishReason: terminal?.finishReason };
      }),
    };
  } finally {
    await connection.close();
  }
}
