import { isDeepStrictEqual } from 'node:util';

import { CHAT_TIERS } from '../../shared/contracts/chat-request.ts';
import { priceUsage } from '../../shared/domain/pricing.ts';
import { DEFAULT_RATES } from '../../shared/domain/routing.ts';
import type { LedgerSum } from '../harness/ledger.ts';
import type { RequestDetail } from '../simulated-provider/stats.ts';
import type { Message } from './conversations.ts';
import type { TurnRecord } from './chat-client.ts';
import type { Driven } from './drive.ts';

export interface Check {
  passed: boolean;
  /** The promise and, if it is broken, the evidence. */
  text: string;
}

/** The tenant's usage in the ledger, and by how much its balance has fallen. */
interface Booked extends LedgerSum {
  fallenMicro: number;
}

/** The simulated provider's counts of each request, by id; undefined if it was never called for it. */
type ProviderBook = ReadonlyMap<string, RequestDetail | undefined>;

/** Longer lists would bury what they show. */
const SHOWN_MAX = 3;

function check(promise: string, faults: readonly string[]): Check {
  if (faults.length === 0) return { passed: true, text: promise };
  const more = faults.length > SHOWN_MAX ? ` and ${faults.length - SHOWN_MAX} more` : '';
  return { passed: false, text: `${promise}: not so for ${faults.slice(0, SHOWN_MAX).join('; ')}${more}` };
}

const nameOf = ({ conversation, turn }: TurnRecord) => `conversation ${conversation}, turn ${turn}`;

/** Asks the simulated provider about each request, and compares. */
export async function checkDrive(providerUrl: string, driven: Driven, booked: Booked): Promise<Check[]> {
  const book = new Map<string, RequestDetail | undefined>();
  for (const { requestId } of driven.records) {
    const response = await fetch(`${providerUrl}/stats/requests/${encodeURIComponent(requestId)}`);
    const text = await response.text();
    // The simulated provider's own type.
    book.set(requestId, response.status === 200 ? (JSON.parse(text) as RequestDetail) : undefined);
  }
  return compareDrive(driven, booked, book);
}

export function compareDrive({ records, planned }: Driven, booked: Booked, book: ProviderBook): Check[] {
  const unanswered = records.filter(({ error, text }) => error !== undefined || text === '');
  const isFlagged = ({ error, finishReason }: TurnRecord) =>
    error === 'content_policy_violation' || finishReason === 'content_filter';
  const counted = records.map(({ requestId, model }) => {
    const { prompt_tokens: promptTokens = 0, completion_tokens: completionTokens = 0 } = book.get(requestId) ?? {};
    const rates = CHAT_TIERS.filter((tier) => tier === model).map((tier) => DEFAULT_RATES[tier]);
    return {
      tokens: promptTokens + completionTokens,
      micro: rates.reduce((sum, rate) => sum + priceUsage({ promptTokens, completionTokens }, rate), 0),
    };
  });
  const tokens = counted.reduce((sum, one) => sum + one.tokens, 0);
  const micro = counted.reduce((sum, one) => sum + one.micro, 0);
  const { entries, fallenMicro } = booked;
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
      `the ledger has what the provider counted (${records.length} requests, ${tokens} tokens, ${micro} micro-credits)`,
      [
        ...(entries === records.length ? [] : [`${entries} entries`]),
        ...(booked.tokens === tokens ? [] : [`${booked.tokens} tokens`]),
        ...(booked.chargedMicro === micro ? [] : [`${booked.chargedMicro} micro-credits`]),
        ...(fallenMicro === micro ? [] : [`the balance, which fell by ${fallenMicro}`]),
      ],
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
