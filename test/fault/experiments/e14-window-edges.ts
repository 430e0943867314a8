import { createChance } from '../../support/chance.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, range } from './findings.ts';

const LIMIT = 20;
const BURST = 48;
const ROUNDS = 6;
const MINUTE_MS = 60_000;

/** As if so much time had passed since everything that was counted so far: nobody has to wait for minutes. */
async function pass({ inspector: { client, keys } }: Lab, ms: number): Promise<void> {
  const [, names] = await client.scan('0', 'MATCH', `${keys.keyRpm('')}*`, 'COUNT', 10_000);
  for (const name of names) {
    const members = await client.zrange(name, '0', '-1');
    await Promise.all(members.map((member) => client.zincrby(name, -ms, member)));
  }
}

/** By Redis's clock: on a busy machine a request may be admitted a second and more after its client has sent it. */
async function acceptedAt({ inspector: { client, keys } }: Lab, sent: SentRequest): Promise<number> {
  return Number(await client.hget(keys.record(sent.id()), 'acceptedAt'));
}

/** The most that any minute holds of these times. */
function worstMinute(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + MINUTE_MS).length));
}

/** E14. Bursts come right at the edge of the window that the last ones opened, from all ingresses at once. */
export const windowEdges: Experiment = {
  name: 'E14',
  title: 'bursts at window edges from 4 ingresses',
  lab: { provider: 'echo=1', ingresses: 4, workers: 1 },
  async run(lab) {
    const tenant = await lab.openTenant(1_000_000, { rpm: LIMIT });
    const chance = createChance(14);
    const admittedAt: number[] = [];
    const early: SentRequest[] = [];
    const strange: SentRequest[] = [];
    let passedMs = 0;

    const send = async (index: number) => {
      const sent = lab.caller.send({ url: lab.urlOf(index), tenant, words: 8, stream: index % 2 === 0 });
      await sent.ended;
      if (sent.last().status === 200) admittedAt.push((await acceptedAt(lab, sent)) + passedMs);
      return sent;
    };
    const sleep = async (ms: number) => {
      await pass(lab, ms);
      passedMs += ms;
    };

    for (let round = 0; round < ROUNDS; round += 1) {
      const burst = await Promise.all(range(BURST, send));
      const refused = burst.filter((sent) => sent.last().status === 429);
      strange.push(...burst.filter(({ last }) => last().status !== 200 && last().errorCode !== 'rpm_exceeded'));
      strange.push(...refused.filter(({ last }) => !isWithinAMinute(last().retryAfterSeconds)));
      // Some callers come back after half the time, and are told to wait on; the last one told sleeps as it was told.
      const waitMs = (refused.at(-1)?.last().retryAfterSeconds ?? 0) * 1_000;
      const restMs = chance.below(waitMs);
      await sleep(waitMs - restMs);
      await send(round);
      const told = (await send(round + 1)).last().retryAfterSeconds ?? restMs / 1_000;
      await sleep(told * 1_000);
      const again = await send(round + 2);
      if (again.last().status !== 200) early.push(again);
    }
    const worst = worstMinute(admittedAt);
    return {
      figures: { admitted: admittedAt.length, 'worst minute': worst, limit: LIMIT },
      verdicts: [
        expectThat('never above the limit in any true minute', worst <= LIMIT, `${worst} of ${LIMIT}`),
        expectThat('the limit is reached', worst === LIMIT, `${worst} of ${LIMIT}`),
        {
          name: 'sleeping Retry-After succeeds',
          faults: early.map(
            (sent) => `${sent.last().status} again, Retry-After ${sent.last().retryAfterSeconds ?? '-'}`,
          ),
        },
        {
          name: 'refusals are 429 rpm_exceeded with Retry-After',
          faults: strange.map((sent) => `${sent.last().status} ${sent.last().errorCode ?? ''}`),
        },
      ],
    };
  },
};

function isWithinAMinute(seconds: number | undefined): boolean {
  return seconds !== undefined && seconds >= 1 && seconds <= MINUTE_MS / 1_000;
}
