import { setTimeout as pause } from 'node:timers/promises';

import { connectRedis, createRedis } from '../../../shared/redis/connection.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { hasText, isWhole, nameOf, none, range, SLACK_MS } from './findings.ts';

/** Longer than BullMQ's locks and a request's lease, 10 s each. */
const FULL_MS = 20_000;
const ASK_EVERY_MS = 500;
/** docs/spec.md#stores-away: a refusal comes within 2 s. */
const REFUSE_WITHIN_MS = 2_000;
const ANSWER_WITHIN_MS = 10_000;

/** E18. */
export const redisFull: Experiment = {
  name: 'E18',
  title: 'Redis reaches maxmemory during 100 streams, has room again after 20 s',
  lab: { provider: 'echo=1', models: { mobius: 'sim?chunks=60&chunk_ms=400', oloid: 'sim?chunks=5' } },
  async run(lab, size) {
    const redis = createRedis(lab.redis.url, 'worker');
    await connectRedis(redis);
    const setLimit = (bytes: number) => redis.call('CONFIG', 'SET', 'maxmemory', String(Math.floor(bytes)));
    const tenant = await lab.openTenant(1_000_000);
    const send = (index: number, model: 'mobius' | 'oloid') =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: 120, model });
    try {
      const streams = range(size === 'full' ? 100 : 10, (index) => send(index, 'mobius'));
      await lab.waitFor(() => streams.every(hasText), 'text in the streams');

      const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
      await setLimit(used * 0.8);
      const meanwhile: SentRequest[] = [];
      for (let index = 0; index < FULL_MS / ASK_EVERY_MS; index += 1) {
        meanwhile.push(send(index, 'oloid'));
        await pause(ASK_EVERY_MS, undefined, { signal: lab.signal });
      }
      await lab.waitFor(() => streams.every(({ readings }) => readings.at(-1)?.end !== 'open'), 'the streams to end');
      await lab.waitFor(() => meanwhile.every((sent) => sent.last().end !== 'open'), 'the refusals');
      await setLimit(0);
      const backAt = performance.now();
      const afterwards: SentRequest[] = [];
      await lab.waitFor(async () => {
        const sent = send(afterwards.push(send(0, 'oloid')), 'oloid');
        await sent.ended;
        return isWhole(sent);
      }, 'new requests to be answered');
      const answersAfterMs = performance.now() - backAt;
      await lab.untilEnded();

      const tookMs = (sent: SentRequest) => sent.last().endedAt - sent.last().sentAt;
      return {
        figures: {
          'slowest refusal (s)': (Math.max(0, ...meanwhile.map(tookMs)) / 1000).toFixed(1),
          'answers again after (s)': (answersAfterMs / 1000).toFixed(1),
          'whole streams': streams.filter(isWhole).length,
        },
        verdicts: [
          none(
            'what comes meanwhile is 503 within 2 s',
            meanwhile.filter((sent) => sent.last().status !== 503 || tookMs(sent) > REFUSE_WITHIN_MS + SLACK_MS),
          ),
          none(
            'every stream is whole',
            streams.filter((sent) => !isWhole(sent)),
          ),
          {
            name: 'new requests are answered within 10 s',
            faults: answersAfterMs > ANSWER_WITHIN_MS + SLACK_MS ? afterwards.map(nameOf) : [],
          },
        ],
      };
    } finally {
      redis.disconnect();
    }
  },
};
