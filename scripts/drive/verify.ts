import type { RequestDetail } from '../simulated-provider/stats.ts';
import type { Message } from './read-conversations.ts';
import type { TurnRecord } from './send-conversations.ts';
import type { RatesByTier } from './summary.ts';

export interface Check {
  passed: boolean;
  /** The promise and, if it is broken, the evidence. */
  text: string;
}

/** What the simulated provider knows about each request, by id; undefined if it was never called for it. */
export type ProviderBook = ReadonlyMap<string, RequestDetail | undefined>;

/** Longer lists would bury what they show. */
const SHOWN_MAX = 3;

function check(promise: string, faults: readonly string[]): Check {
  if (faults.length === 0) return { passed: true, text: promise };
  const more = faults.length > SHOWN_MAX ? ` and ${faults.length - SHOWN_MAX} more` : '';
  return { passed: false, text: `${promise}: not so for ${faults.slice(0, SHOWN_MAX).join('; ')}${more}` };
}

const nameOf = ({ conversation, turn }: TurnRecord) => `conversation ${conversation}, turn ${turn}`;

export function checkAnswered(records: readonly TurnRecord[], planned: number): Check {
  const faults = records.flatMap((record) =>
    record.error === undefined && record.text !== '' ? [] : [`${nameOf(record)} (${record.error ?? 'no text'})`],
  );
  if (records.length < planned) faults.push(`${planned - records.length} turns that were not sent`);
  return check(`${planned} requests were answered`, faults);
}

export function checkUnflagged(records: readonly TurnRecord[]): Check {
  const flagged = records.filter(
    ({ error, finishReason }) => error === 'content_policy_violation' || finishReason === 'content_filter',
  );
  return check('no request and no answer was flagged by moderation', flagged.map(nameOf));
}

export function checkCalledOnce(records: readonly TurnRecord[], book: ProviderBook): Check {
  const faults = records.flatMap((record) => {
    const calls = book.get(record.requestId)?.calls ?? 0;
    return calls === 1 ? [] : [`${nameOf(record)} (${calls} calls)`];
  });
  return check('the provider was called once for every request', faults);
}

/** Each turn after the first must reach the provider together with everything said before in its conversation. */
export function checkHistory(records: readonly TurnRecord[], book: ProviderBook): Check {
  const said = new Map<string, Message[]>();
  const faults: string[] = [];
  let later = 0;
  for (const record of records.toSorted((left, right) => left.turn - right.turn)) {
    const { entityId, submitted, text, turn } = record;
    const expected = [...(said.get(entityId) ?? []), ...submitted];
    said.set(entityId, [...expected, { role: 'assistant', content: text }]);
    if (turn === 1) continue;
    later += 1;
    const received = book.get(record.requestId)?.messages ?? [];
    if (!endsWith(received, expected)) faults.push(nameOf(record));
  }
  return check(`${later} later turns reached the provider with the earlier turns and their answers`, faults);
}

function endsWith(received: readonly unknown[], expected: readonly Message[]): boolean {
  const end = received.slice(-expected.length);
  return end.length === expected.length && end.every((message, index) => isSame(message, expected[index]));
}

function isSame(received: unknown, expected: Message | undefined): boolean {
  if (typeof received !== 'object' || received === null || !('role' in received) || !('content' in received)) {
    return false;
  }
  return received.role === expected?.role && received.content === expected?.content;
}

/** The cost of what the provider counted, at the rates of the tiers that answered. */
export function providerCredits(records: readonly TurnRecord[], book: ProviderBook, rates: RatesByTier): number {
  return records.reduce((sum, { model, requestId }) => {
    const counts = book.get(requestId);
    const rate = rates[model];
    if (counts === undefined || rate === undefined) return sum;
    return sum + counts.prompt_tokens * rate.prompt + counts.completion_tokens * rate.completion;
  }, 0);
}

/** Amounts have six decimals. */
const CREDIT_TOLERANCE = 0.000_001;

export function checkCharged(charged: number, counted: number): Check {
  return check(`the tenant was charged what the provider counted (${counted} credits)`, [
    ...(Math.abs(charged - counted) < CREDIT_TOLERANCE ? [] : [`the balance, which fell by ${charged}`]),
  ]);
}

export function renderChecks(checks: readonly Check[]): string {
  return checks.map(({ passed, text }) => `${passed ? 'PASS' : 'FAIL'}  ${text}`).join('\n');
}
