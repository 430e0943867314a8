import { randomBytes } from 'node:crypto';

import type { AdminApi } from '../harness/admin-api.ts';
import { openAccount, RATES_BY_DEFAULT } from './account.ts';
import type { Account } from './account.ts';
import { createChatClient } from './chat-client.ts';
import { createProgress } from './progress.ts';
import { readProviderBook } from './provider-book.ts';
import type { Conversation } from './read-conversations.ts';
import { runDrive } from './send-conversations.ts';
import type { TurnRecord } from './send-conversations.ts';
import { renderSummary, summarise } from './summary.ts';
import type { RatesByTier, Summary } from './summary.ts';
import {
  checkAnswered,
  checkCalledOnce,
  checkCharged,
  checkHistory,
  checkUnflagged,
  providerCredits,
  renderChecks,
} from './verify.ts';
import type { Check } from './verify.ts';

export interface Drive {
  conversations: readonly Conversation[];
  /** Base URL, `/platform/v1` included. */
  url: string;
  key: string;
  isStreamed: (index: number) => boolean;
  concurrency: number;
  model?: string | undefined;
  /** Where balance and rates are read; without it, only the default rates are known. */
  account?: { admin: AdminApi; tenantId: string | undefined } | undefined;
  /** The simulated provider, to verify what reached it; needs `account`. */
  providerUrl?: string | undefined;
  signal: AbortSignal;
  print: (line: string) => void;
}

export interface DriveReport {
  summary: Summary;
  records: TurnRecord[];
  checks: Check[];
  /** Whether every request was sent and answered, and every check passed. */
  passed: boolean;
}

/** Runs a whole drive: progress, summary and, on request, verification. Prints as it goes. */
export async function drive(options: Drive): Promise<DriveReport> {
  const { conversations, url, key, print } = options;
  const account =
    options.account === undefined ? undefined : await openAccount(options.account.admin, options.account.tenantId);
  const rates = (await account?.rates()) ?? RATES_BY_DEFAULT;
  const balanceBefore = await account?.balance();
  await assertReachable(url);

  const startedAt = performance.now();
  const records = await send(options);
  const turns = conversations.reduce((sum, conversation) => sum + conversation.turns.length, 0);
  const planned = { conversations: conversations.length, turns };
  const summary = summarise(records, planned, rates, performance.now() - startedAt);
  const charged = await chargeOf(account, balanceBefore);
  print(renderSummary(summary, key.includes('_sk_test_'), charged));

  const checks =
    options.providerUrl === undefined || charged === undefined
      ? []
      : await verify(options.providerUrl, records, turns, rates, charged);
  if (checks.length > 0) print(`\n${renderChecks(checks)}`);
  const isWhole = Object.keys(summary.errors).length === 0 && summary.left === 0;
  return { summary, records, checks, passed: isWhole && checks.every(({ passed }) => passed) };
}

async function assertReachable(url: string): Promise<void> {
  await fetch(new URL('/health/live', url)).catch((cause: unknown) => {
    throw new Error(`Nothing answers at ${url}: start the service with npm start, or name its address with --url.`, {
      cause,
    });
  });
}

async function send({ conversations, url, key, signal, print, ...options }: Drive): Promise<TurnRecord[]> {
  const total = conversations.reduce((sum, { turns }) => sum + turns.length, 0);
  const progress = createProgress(total, print, process.stderr.isTTY);
  const client = createChatClient(url, key);
  try {
    return await runDrive({
      conversations,
      client,
      runId: randomBytes(6).toString('hex'),
      isStreamed: options.isStreamed,
      model: options.model,
      concurrency: options.concurrency,
      onTurn: ({ turn, turns, error }) => {
        progress.add(error !== undefined);
        if (error !== undefined) progress.skip(turns - turn);
      },
      onWait: progress.wait,
      signal,
    });
  } finally {
    progress.stop();
    await client.close();
  }
}

async function chargeOf(account: Account | undefined, before: number | undefined): Promise<number | undefined> {
  if (account === undefined || before === undefined) return undefined;
  return before - (await account.balance());
}

async function verify(
  providerUrl: string,
  records: readonly TurnRecord[],
  planned: number,
  rates: RatesByTier,
  charged: number,
): Promise<Check[]> {
  const book = await readProviderBook(
    providerUrl,
    records.map(({ requestId }) => requestId),
  );
  return [
    checkAnswered(records, planned),
    checkUnflagged(records),
    checkCalledOnce(records, book),
    checkHistory(records, book),
    checkCharged(charged, providerCredits(records, book, rates)),
  ];
}
