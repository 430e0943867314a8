import {
  COST_PER_CHUNK,
  COUNTED_MORE,
  GRANT,
  GRANTED_LATER,
  HELD_BY_OTHERS,
  HOLD,
  OVERDRAFT,
} from './simulated-fleet.ts';
import type { Fleet } from './simulated-fleet.ts';

/** The broken promises of docs/architecture.md#promises, in words; empty when all are kept. */
export function brokenPromises(fleet: Fleet): string[] {
  const { request, account } = fleet.world;
  const broken: string[] = [];
  const say = (isBroken: boolean, what: string) => {
    if (isBroken) broken.push(what);
  };
  say(request.state !== 'done' && request.state !== 'void', `the request never ended: ${request.state}`);
  say(fleet.promised && request.state !== 'done', 'a call got 202, and the request is void');
  say(request.state === 'done' && request.terminals !== 1, `${request.terminals} terminal events`);
  say(account.held !== HELD_BY_OTHERS, `${account.held - HELD_BY_OTHERS} still held`);
  say(account.pending.size > 0, 'a charge is pending for ever');
  const charges = fleet.book.ledger.reduce((sum, { cost }) => sum + cost, 0);
  say(fleet.book.ledger.length > 1, `${fleet.book.ledger.length} ledger entries`);
  say(fleet.book.balance !== GRANT + GRANTED_LATER - charges, 'the balance is not the sum of the ledger');
  say(account.book !== fleet.book.balance, 'Redis has another balance than the book');
  const sequence = fleet.stream.map(({ lastSeq }) => lastSeq);
  say(
    sequence.some((seq, index) => seq !== index + 1),
    `the stream repeats or skips: ${sequence.join(' ')}`,
  );
  say(new Set(fleet.stream.map(({ delivery }) => delivery)).size > 1, 'two deliveries wrote text');
  say(request.state === 'done' && fleet.stream.length > 0 && fleet.book.ledger.length === 0, 'text was not charged');
  const isCharged = fleet.book.ledger.length === 1;
  say(
    isCharged && fleet.owed !== fleet.stream.length * COST_PER_CHUNK + COUNTED_MORE,
    'the charge is not for the text that was sent',
  );
  say(isCharged && charges !== fleet.owed && charges < HOLD, 'less is charged than was held');
  const spendable = GRANT + GRANTED_LATER - HELD_BY_OTHERS;
  say(fleet.stream.length * COST_PER_CHUNK > spendable, 'more text was released than the balance pays for');
  say(charges > spendable + OVERDRAFT, `${charges} charged of ${spendable}`);
  say(request.state === 'void' && fleet.stream.length > 0, 'a void request has text');
  return broken;
}
