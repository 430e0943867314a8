import { randomBytes } from 'node:crypto';

import { DEFAULT_RATES } from '../../shared/domain/routing.ts';
import { toCredits } from '../../shared/domain/pricing.ts';
import type { AdminApi } from '../harness/admin-api.ts';
import { createChatClient } from './chat-client.ts';
import type { ChatClient, TurnRecord } from './chat-client.ts';
import { checkDrive } from './checks.ts';
import type { Check } from './checks.ts';
import type { Conversation } from './conversations.ts';
import { renderSummary, summarise } from './summary.ts';
import type { RatesByTier, Summary } from './summary.ts';

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
  /** Every request was sent and answered, and every check passed. */
  passed: boolean;
}

/** The interval of the lines that say how far the drive is. */
const PROGRESS_MS = 5_000;

const DEFAULT: RatesByTier = Object.fromEntries(
  Object.entries(DEFAULT_RATES).map(([tier, { promptMicro, completionMicro }]) => [
    tier,
    { prompt: toCredits(promptMicro), completion: toCredits(completionMicro) },
  ]),
);

/** Runs a whole drive: progress, summary and, on request, verification. Prints as it goes. */
export async function drive(options: Drive): Promise<DriveReport> {
  const { conversations, url, key, print, providerUrl } = options;
  const account = options.account === undefined ? undefined : await openAccount(options.account);
  const balanceBefore = await account?.balance();
  await fetch(new URL('/health/live', url)).catch((cause: unknown) => {
    const how = 'start the service with npm start, or name its address with --url';
    throw new Error(`Nothing answers at ${url}: ${how}.`, { cause });
  });

  const startedAt = performance.now();
  const records = await send(options);
  const turns = conversations.reduce((sum, conversation) => sum + conversation.turns.length, 0);
  const rates = account?.rates ?? DEFAULT;
  const summary = summarise(
    records,
    { conversations: conversations.length, turns },
    rates,
    performance.now() - startedAt,
  );
  const charged =
    account === undefined || balanceBefore === undefined ? undefined : balanceBefore - (await account.balance());
  print(renderSummary(summary, key.includes('_sk_test_'), charged));
  const checks =
    providerUrl === undefined || charged === undefined
      ? []
      : await checkDrive(providerUrl, { records, planned: turns, rates, charged });
  for (const { passed, text } of checks) print(`${passed ? 'PASS' : 'FAIL'}  ${text}`);
  const passed = summary.left === 0 && Object.keys(summary.errors).length === 0 && checks.every((one) => one.passed);
  return { summary, records, checks, passed };
}

/** Asks the administration about the tenant that pays. If no tenant is named, takes the only one. */
async function openAccount({ admin, tenantId }: NonNullable<Drive['account']>) {
  const list = async (path: string) =>
    // Every list of the administration has this form (docs/spec.md#conventions).
    ((await admin.find(path))?.['data'] ?? []) as Record<string, unknown>[];
  const tenants = tenantId === undefined ? await list('/admin/v1/tenants') : [{ id: tenantId }];
  if (tenants.length !== 1)
    throw new Error('There is not exactly one tenant: name the one that the key is of with --tenant.');
  const id = String(tenants[0]?.['id']);
  const tiers = await list('/admin/v1/tiers');
  return {
    // docs/spec.md#price: every tier has both rates.
    rates: Object.fromEntries(tiers.map(({ id: tier, rates }) => [String(tier), rates])) as RatesByTier,
    async balance() {
      const tenant = await admin.find(`/admin/v1/tenants/${id}`);
      if (tenant === undefined) throw new Error(`There is no tenant ${id}; --tenant names the one that the key is of.`);
      return Number(tenant['balance']);
    },
  };
}

/**
 * Sends the conversations, several at once, each one turn by turn: the service remembers what was said by entity. After
 * a failed turn, the rest of its conversation is skipped. Stops early on `signal`.
 */
async function send(options: Drive): Promise<TurnRecord[]> {
  const { conversations, concurrency, signal, print } = options;
  let planned = conversations.reduce((sum, { turns }) => sum + turns.length, 0);
  let waits = 0;
  const records: TurnRecord[] = [];
  const progress = setInterval(() => {
    const failed = records.filter(({ error }) => error !== undefined).length;
    print(`drive | ${records.length} of ${planned} requests, ${failed} failed, ${waits} times told to wait (429)`);
  }, PROGRESS_MS);
  const client = createChatClient(options.url, options.key);
  const runId = randomBytes(6).toString('hex');
  const queue = conversations.entries();
  const takeTurns = async () => {
    for (const [index, conversation] of queue) {
      const turns = converse(client, options, { conversation, index, runId }, () => {
        waits += 1;
      });
      for await (const record of turns) {
        records.push(record);
        if (record.error !== undefined) planned -= record.turns - record.turn;
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(concurrency, conversations.length) }, takeTurns));
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(progress);
    await client.close();
  }
  return records;
}

async function* converse(
  client: ChatClient,
  { isStreamed, model, signal }: Drive,
  { conversation: { id, turns }, index, runId }: { conversation: Conversation; index: number; runId: string },
  onWait: () => void,
): AsyncGenerator<TurnRecord> {
  // docs/spec.md#chat-request allows 256 characters; the position keeps two lines with the same id apart.
  const entityId = `drive-${runId}-${index + 1}-${id}`.slice(0, 256);
  const stream = isStreamed(index);
  for (const [before, messages] of turns.entries()) {
    const outcome = await client.send({ messages, entityId, stream, model }, signal, onWait);
    const place = { conversation: id, entityId, turn: before + 1, turns: turns.length };
    yield { ...outcome, ...place, stream, submitted: messages };
    if (outcome.error !== undefined) return;
  }
}
