import { randomBytes } from 'node:crypto';

import type { AdminApi } from '../harness/admin-api.ts';
import type { RequestDetail } from '../simulated-provider/stats.ts';
import { openAccount, RATES_BY_DEFAULT } from './account.ts';
import type { Account } from './account.ts';
import { createChatClient } from './chat-client.ts';
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
import type { Check, ProviderBook } from './verify.ts';

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

/** How often a line says how far the drive is. */
const PROGRESS_MS = 5_000;

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
  let planned = conversations.reduce((sum, { turns }) => sum + turns.length, 0);
  let [done, failed, waits] = [0, 0, 0];
  const progress = setInterval(() => {
    print(`drive | ${done} of ${planned} requests, ${failed} failed, ${waits} times told to wait (429)`);
  }, PROGRESS_MS);
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
        done += 1;
        if (error === undefined) return;
        failed += 1;
        // The rest of the conversation is not sent.
        planned -= turns - turn;
      },
      onWait: () => {
        waits += 1;
      },
      signal,
    });
  } finally {
    clearInterval(progress);
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
  const book = await readProviderBook(providerUrl, records);
  return [
    checkAnswered(records, planned),
    checkUnflagged(records),
    checkCalledOnce(records, book),
    checkHistory(records, book),
    checkCharged(charged, providerCredits(records, book, rates)),
  ];
}

/** Asks the simulated provider what it knows about these requests: `GET /stats/requests/{id}`. */
async function readProviderBook(providerUrl: string, records: readonly TurnRecord[]): Promise<ProviderBook> {
  const book = new Map<string, RequestDetail | undefined>();
  for (const { requestId } of records) {
    const response = await fetch(`${providerUrl}/stats/requests/${encodeURIComponent(requestId)}`);
    const text = await response.text();
    // The simulated provider's own type.
    book.set(requestId, response.status === 200 ? (JSON.parse(text) as RequestDetail) : undefined);
  }
  return book;
}
