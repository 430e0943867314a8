import { setTimeout as pause } from 'node:timers/promises';

import { startLossyProxy } from '../../support/lossy-proxy.ts';
import { proxyTo } from '../../support/store-proxy.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { callsAtMost, expectThat, hasText, isWhole, none, range } from './findings.ts';

/** Longer than leases and locks. */
const REDIS_AWAY_MS = 12_000;
/** By so much later than the worker that starts does the other one find Redis again. */
const LATER_MS = 1_000;
const MONGO_AWAY_MS = 30_000;
const CLIENTS = 6;
/** Records that gather between two rounds of settlement, with some slack. */
const OUTBOX_MAX = 50;

/** E40. */
export const startsAtReturn: Experiment = {
  name: 'E40',
  title: 'kill -9 Redis during 50 streams, back after 12 s; a worker that starts finds it before the one that streams',
  lab: { provider: 'echo=1', models: { mobius: 'sim?chunks=60&chunk_ms=400' }, workers: 0 },
  async run(lab) {
    const proxy = await startLossyProxy(lab.redis.url);
    await lab.startWorker({ REDIS_URL: proxy.url });
    const tenant = await lab.openTenant(1_000_000);
    const streams = range(50, (index) => lab.caller.send({ url: lab.urlOf(index), tenant, words: 120 }));
    await lab.waitFor(() => streams.every(hasText), 'text in the streams');

    await lab.redis.current().kill();
    const { promise: isFound, resolve: find } = Promise.withResolvers<undefined>();
    proxy.hold(isFound);
    proxy.setDown(true);
    proxy.setDown(false);
    await pause(REDIS_AWAY_MS, undefined, { signal: lab.signal });
    await lab.redis.restart();
    await lab.startWorker();
    await pause(LATER_MS, undefined, { signal: lab.signal });
    find(undefined);
    await lab.untilEnded();

    return {
      figures: { 'whole streams': streams.filter(isWhole).length },
      verdicts: [
        none(
          'every stream is whole in the end: its worker lives',
          streams.filter((sent) => !isWhole(sent)),
        ),
      ],
      judge: (evidence) => [callsAtMost(1, evidence)],
    };
  },
};

/** The worker that leads everything loses MongoDB, and another one has it. */
function leaderLosesMongo(name: string, title: string, how: 'cut' | 'stall'): Experiment {
  return {
    ...{ name, title },
    lab: { provider: 'echo=1', models: { mobius: 'sim?first_token_ms=100&chunks=8&chunk_ms=50' }, workers: 0 },
    async run(lab) {
      const proxy = await proxyTo(lab.mongo.url);
      await lab.startWorker({ MONGODB_URI: proxy.url });
      const other = await lab.startWorker();
      const tenant = await lab.openTenant(1_000_000);
      let isOver = false;
      const all: SentRequest[] = [];
      const clients = range(CLIENTS, async (number) => {
        for (let turn = 0; !isOver; turn += 1) {
          const sent = lab.caller.send({ url: lab.urlOf(number + turn), tenant, stream: turn % 2 === 0 });
          all.push(sent);
          await sent.ended;
        }
      });
      await lab.waitFor(() => all.filter(isWhole).length > CLIENTS * 4, 'the first answers');

      proxy[how]();
      await pause(MONGO_AWAY_MS, undefined, { signal: lab.signal });
      const waiting = await lab.metric(other, 'parley_outbox_length');
      // What a worker sent into the silence is lost with its connections, as it has given them up.
      proxy.cut();
      proxy.restore();
      isOver = true;
      await Promise.all(clients);

      return {
        figures: { requests: all.length, 'records that wait after 30 s': waiting },
        verdicts: [
          none(
            'requests go on',
            all.filter((sent) => !isWhole(sent)),
          ),
          expectThat('the other worker books them', waiting <= OUTBOX_MAX, `${waiting} records wait`),
        ],
      };
    },
  };
}

/** E41. */
export const leaderCutOff = leaderLosesMongo(
  'E41',
  'the leading worker’s connections to MongoDB break for 30 s',
  'cut',
);

/** E41b. */
export const leaderUnheard = leaderLosesMongo('E41b', 'MongoDB does not answer the leading worker for 30 s', 'stall');
