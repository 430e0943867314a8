import { setTimeout as pause } from 'node:timers/promises';

import { ask, range, settledStatement, untilServed } from '../lab.ts';
import type { Lab } from '../lab.ts';
import { verdict } from '../measure.ts';
import type { Measure } from '../measure.ts';
import type { Reply } from '../send.ts';
import type { Account, Statement } from '../system.ts';

const STREAMS = 20;
const TOKENS = 80;
const CHUNKS = 40;
const CHUNK_MS = 50;
/** In the middle of the streams. */
const KILL_MS = 1_000;
const GRANT = 1_000_000;
/** The components that answer or work; killing stores is a measure of its own. */
const VICTIMS = ['worker', 'gateway'] as const;

/** Streams that are cut because a component dies, which is restarted at once. */
async function killedRound(lab: Lab, account: Account, victim: string): Promise<Reply[]> {
  const component = lab.system.components[victim];
  if (component === undefined) throw new Error(`${lab.system.name} has no ${victim}.`);
  const content = 'Tell the story of a river, from its spring to the sea.';
  const streams = range(STREAMS, (index) =>
    ask(lab, { account, index, timeoutMs: 60_000 }, { content, stream: true, maxTokens: TOKENS }),
  );
  await pause(KILL_MS, undefined, { signal: lab.signal });
  await component.kill();
  await component.start();
  const replies = await Promise.all(streams);
  await untilServed(lab, account);
  return replies;
}

export interface Booked {
  unbilled: number;
  twice: number;
}

/** Every answer that showed text must be booked exactly once, whichever process died. */
export function compareBookings(answered: readonly string[], bookings: readonly string[]): Booked {
  const times = Map.groupBy(bookings, (id) => id);
  return {
    unbilled: answered.filter((id) => !times.has(id)).length,
    twice: [...times.values()].filter(({ length }) => length > 1).length,
  };
}

export const balanceDrift: Measure = {
  name: 'drift',
  title: 'The books after kill -9 in the middle of streams',
  needs: ['accounts', 'kill'],
  async run(lab) {
    const { system, size, provider, log } = lab;
    await provider.set({ tokens: TOKENS, chunks: CHUNKS, chunk_ms: CHUNK_MS });
    const account = await system.openAccount({ tokens: GRANT });
    const victims = VICTIMS.filter((name) => name in system.components);
    if (victims.length === 0) throw new Error(`${system.name} names neither a worker nor a gateway to kill.`);
    const replies: Reply[] = [];
    for (let round = 0; round < (size === 'full' ? 2 : 1); round += 1) {
      for (const victim of victims) {
        log(`${system.name}: killing its ${victim} in the middle of ${STREAMS} streams`);
        replies.push(...(await killedRound(lab, account, victim)));
      }
    }
    const statement = await settledStatement(lab, account);
    return judge(replies, statement, (await provider.counts()).tokens, victims);
  },
};

/** A broken answer has no usage from the provider, so whoever charges for it counts its tokens, within this margin. */
const NEAR = 0.05;
const isNear = (charged: number, produced: number) => Math.abs(charged - produced) <= NEAR * produced;

function judge(replies: readonly Reply[], statement: Statement, produced: number, victims: readonly string[]) {
  const { granted, charged, balance, bookings } = statement;
  const answered = replies.filter(({ text }) => text !== '');
  const drift = granted - charged - balance;
  const booked =
    bookings === undefined
      ? undefined
      : compareBookings(
          answered.map(({ requestId }) => requestId),
          bookings,
        );
  return {
    figures: {
      killed: victims.join(', '),
      'streams with text': answered.length,
      'of them whole': answered.filter(({ isWhole }) => isWhole).length,
      'granted − ledger − balance': drift,
      'answers unbilled': booked?.unbilled ?? 'no booking of single requests',
      'answers billed twice': booked?.twice ?? 'no booking of single requests',
      'tokens that the provider produced': produced,
      'tokens charged': charged,
    },
    verdicts: [
      verdict('granted − ledger − balance is 0', drift === 0, `${drift} tokens`),
      ...(booked === undefined
        ? [
            verdict(
              'what the provider produced is charged',
              isNear(charged, produced),
              `${charged} of ${produced} tokens`,
            ),
          ]
        : [
            verdict('every answer is billed', booked.unbilled === 0, `${booked.unbilled} are not`),
            verdict('no answer is billed twice', booked.twice === 0, `${booked.twice} are`),
          ]),
    ],
  };
}
