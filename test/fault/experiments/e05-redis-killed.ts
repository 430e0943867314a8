import { setTimeout as pause } from 'node:timers/promises';

import type { SentRequest } from '../client/caller.ts';
import { withClient } from '../../support/redis/redis-nodes.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { hasText, isWhole, nameOf, none, range, SLACK_MS } from './findings.ts';

const ASK_EVERY_MS = 500;
/** docs/spec.md#stores-away: with Redis away, 503 within 2 s. */
const REFUSE_WITHIN_MS = 2_000;
const RESUME_WITHIN_MS = 10_000;

/** When something new came after `from`; undefined: nothing any more. */
function nextEventAt({ readings }: SentRequest, from: number): number | undefined {
  return readings.flatMap(({ events }) => events).find(({ at }) => at > from)?.at;
}

/** Takes Redis away; what it returns brings Redis back with all that it had. */
type TakeAway = (lab: Lab) => Promise<() => Promise<unknown>>;

const kill: TakeAway = async (lab) => {
  await lab.redis.current().kill();
  return () => lab.redis.restart();
};

/** Redis has no replica, and refuses every write for want of one. */
const refuseWrites: TakeAway = async (lab) => {
  const needReplicas = (count: number) =>
    withClient(lab.redis.url, (client) => client.config('SET', 'min-replicas-to-write', count));
  await needReplicas(1);
  return () => needReplicas(0);
};

/** Streams run, others are asked for meanwhile, and `awayMs` later Redis is back. */
function redisAway({
  awayMs,
  takeAway = kill,
  ...named
}: Pick<Experiment, 'name' | 'title'> & { awayMs: number; takeAway?: TakeAway }): Experiment {
  return {
    ...named,
    lab: { provider: 'echo=1', models: { mobius: 'sim?chunks=60&chunk_ms=400', oloid: 'sim?chunks=5' } },
    async run(lab, size) {
      const tenant = await lab.openTenant(1_000_000);
      const send = (index: number, model: 'mobius' | 'oloid') =>
        lab.caller.send({ url: lab.urlOf(index), tenant, words: 120, model });
      const streams = range(size === 'full' ? 100 : 10, (index) => send(index, 'mobius'));
      await lab.waitFor(() => streams.every(hasText), 'text in the streams');

      const bringBack = await takeAway(lab);
      const meanwhile = await askMeanwhile();
      await bringBack();
      const backAt = performance.now();
      await lab.waitFor(() => meanwhile.every((sent) => sent.last().end !== 'open'), 'the refusals');
      const afterwards: SentRequest[] = [];
      await lab.waitFor(async () => {
        const sent = send(afterwards.push(send(0, 'oloid')), 'oloid');
        await sent.ended;
        return isWhole(sent);
      }, 'new requests to be answered');
      const answersAfterMs = performance.now() - backAt;
      await lab.untilEnded();

      async function askMeanwhile(): Promise<SentRequest[]> {
        const asked: SentRequest[] = [];
        for (let index = 0; index < awayMs / ASK_EVERY_MS; index += 1) {
          asked.push(send(index, 'oloid'));
          await pause(ASK_EVERY_MS, undefined, { signal: lab.signal });
        }
        return asked;
      }

      const resumedMs = streams.flatMap((sent) => nextEventAt(sent, backAt) ?? []).map((at) => at - backAt);
      const slowest = Math.max(0, ...meanwhile.map((sent) => sent.last().endedAt - sent.last().sentAt));
      return {
        figures: {
          'slowest refusal (s)': (slowest / 1000).toFixed(1),
          'work resumed after (s)': (Math.max(0, ...resumedMs) / 1000).toFixed(1),
          'whole streams': streams.filter(isWhole).length,
        },
        verdicts: [
          none(
            'what comes meanwhile is 503 within 2 s',
            meanwhile.filter((sent) => {
              const { status, endedAt, sentAt } = sent.last();
              return status !== 503 || endedAt - sentAt > REFUSE_WITHIN_MS + SLACK_MS;
            }),
          ),
          none(
            'what was admitted waits, and resumes within 10 s',
            streams
              // Redis answers a little before its restart is over: some have gone on, and ended, by then.
              .filter((sent) => !isWhole(sent) || sent.last().endedAt > backAt)
              .filter((sent) => (nextEventAt(sent, backAt) ?? Infinity) - backAt > RESUME_WITHIN_MS + SLACK_MS),
          ),
          none(
            'every stream is whole in the end: its worker lives',
            streams.filter((sent) => !isWhole(sent)),
          ),
          {
            name: 'new requests are answered within 10 s',
            faults: answersAfterMs > RESUME_WITHIN_MS + SLACK_MS ? afterwards.map(nameOf) : [],
          },
        ],
      };
    },
  };
}

/** E5. */
export const redisKilled = redisAway({
  name: 'E5',
  title: 'kill -9 Redis during 100 streams, back after 15 s',
  awayMs: 15_000,
});

/** E5c: longer than the leases of readers and their grace together. */
export const redisAwayForLong = redisAway({
  name: 'E5c',
  title: 'kill -9 Redis during 100 streams, back after 60 s',
  awayMs: 60_000,
});

/** E5d: longer than leases and locks. */
export const writesRefused = redisAway({
  name: 'E5d',
  title: 'Redis refuses every write for 15 s during 100 streams, as a master without replicas does',
  awayMs: 15_000,
  takeAway: refuseWrites,
});
