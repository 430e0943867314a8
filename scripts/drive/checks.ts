import { isDeepStrictEqual } from 'node:util';

import type { RequestDetail } from '../simulated-provider/stats.ts';
import type { Message } from './conversations.ts';
import type { TurnRecord } from './chat-client.ts';
import { creditsOf } from './summary.ts';
import type { RatesByTier } from './summary.ts';

export interface Check {
  passed: boolean;
  /** The promise and, if it is broken, the evidence. */
  text: string;
}

/** A drive that has ended. */
export interface Driven {
  records: readonly TurnRecord[];
  planned: number;
  rates: RatesByTier;
  charged: number;
}

/** The simulated provider's counts of each request, by id; undefined if it was never called for it. */
type ProviderBook = ReadonlyMap<string, RequestDetail | undefined>;

/** Longer lists would bury what they show. */
const SHOWN_MAX = 3;
/** Amounts have six decimals. */
const CREDIT_TOLERANCE = 0.000_001;

function check(promise: string, faults: readonly string[]): Check {
  if (faults.length === 0) return { passed: true, text: promise };
  const more = faults.length > SHOWN_MAX ? ` and ${faults.length - SHOWN_MAX} more` : '';
  return { passed: false, text: `${promise}: not so for ${faults.slice(0, SHOWN_MAX).join('; ')}${more}` };
}

const nameOf = ({ conversation, turn }: TurnRecord) => `conversation ${conversation}, turn ${turn}`;

/** Asks the simulated provider about each request, and compares. */
export async function checkDrive(providerUrl: string, driven: Driven): Promise<Check[]> {
  const book = new Map<string, RequestDetail | undefined>();
  for (const { requestId } of driven.records) {
    const response = await fetch(`${providerUrl}/stats/requests/${encodeURIComponent(requestId)}`);
    const text = await response.text();
    // The simulated provider's own type.
    book.set(requestId, response.status === 200 ? (JSON.parse(text) as RequestDetail) : undefined);
  }
  return compareDrive(driven, book);
}

export function compareDrive({ records, planned, rates, charged }: Driven, book: ProviderBook): Check[] {
  const unanswered = records.filter(({ error, text }) => error !== undefined || text === '');
  const isFlagged = ({ error, finishReason }: TurnRecord) =>
    error === 'content_policy_violation' || finishReason === 'content_filter';
  const counted = records.reduce((sum, { requestId, model }) => {
    const { prompt_tokens: promptTokens = 0, completion_tokens: completionTokens = 0 } = book.get(requestId) ?? {};
    return sum + creditsOf({ promptTokens, completionTokens }, model, rates);
  }, 0);
  return [
    check(`${planned} requests were answered`, [
      ...unanswered.map((record) => `${nameOf(record)} (${record.error ?? 'no text'})`),
      ...(records.length < planned ? [`${planned - records.length} turns that were not sent`] : []),
    ]),
    check('no request and no answer was flagged by moderation', records.filter(isFlagged).map(nameOf)),
    check(
      'the provider was called once for every request',
      records.filter(({ requestId }) => book.get(requestId)?.calls !== 1).map(nameOf),
    ),
    checkHistory(records, book),
    check(
      `the tenant was charged what the provider counted (${counted} credits)`,
      Math.abs(charged - counted) < CREDIT_TOLERANCE ? [] : [`the balance, which fell by ${charged}`],
    ),
  ];
}

/** Each turn after the first must reach the provider together with everything said before in its conversation. */
function checkHistory(records: readonly TurnRecord[], book: ProviderBook): Check {
  const said = new Map<string, Message[]>();
  const faults: string[] = [];
  let later = 0;
  for (const record of records.toSorted((left, right) => left.turn - right.turn)) {
    const { entityId, submitted, text, turn } = record;
    const expected = [...(said.get(entityId) ?? []), ...submitted];
    said.set(entityId, [...expected, { role: 'assistant', content: text }]);
    if (turn === 1) continue;
    later += 1;
    // Only the parts that are compared; the provider keeps messages as they came.
    const received = (book.get(record.requestId)?.messages ?? []) as Partial<Message>[];
    const end = received.slice(-expected.length).map(({ role, content }) => ({ role, content }));
    if (!isDeepStrictEqual(end, expected)) faults.push(nameOf(record));
  }
  return check(`${later} later turns reached the provider with the earlier turns and their answers`, faults);
}
