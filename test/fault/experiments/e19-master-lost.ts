import { setTimeout as pause } from 'node:timers/promises';

import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab, LabOptions } from '../lab/lab.ts';
import { hasText, isWhole, none, range, SLACK_MS } from './findings.ts';

const CHUNKS = 60;
const CHUNK_MS = 250;
const TENANTS = 8;
const SHARDS = 4;
/** docs/spec.md#lost-masters: everything works within 15 s. */
const BACK_WITHIN_MS = 15_000;
const ASK_EVERY_MS = 250;

/** How a master is lost; resolves when it is. */
type Lose = (lab: Lab) => Promise<unknown>;

/** Asks on behalf of every tenant until each has a whole answer to one and the same round. */
async function untilAllAnswered(ask: () => SentRequest[]): Promise<SentRequest[]> {
  const asked: SentRequest[] = [];
  for (;;) {
    const round = ask();
    asked.push(...round);
    await Promise.all(round.map(({ ended }) => ended));
    if (round.every(isWhole)) return asked;
    await pause(ASK_EVERY_MS);
  }
}

function masterLost({
  redis,
  lose,
  ...named
}: Pick<Experiment, 'name' | 'title'> & Required<Pick<LabOptions, 'redis'>> & { lose: Lose }): Experiment {
  return {
    ...named,
    lab: {
      redis,
      shards: redis === 'cluster' ? SHARDS : 1,
      provider: 'echo=1',
      models: { mobius: `sim?chunks=${CHUNKS}&chunk_ms=${CHUNK_MS}`, oloid: 'sim?chunks=5' },
    },
    async run(lab, size) {
      const tenants = await Promise.all(range(TENANTS, () => lab.openTenant(1_000_000)));
      const sendAs = (index: number, model: 'mobius' | 'oloid', stream = true) => {
        const tenant = tenants[index % TENANTS];
        if (tenant === undefined) throw new Error('There are no tenants.');
        return lab.caller.send({ url: lab.urlOf(index), tenant, words: CHUNKS * 2, model, stream });
      };
      const streams = range(size === 'full' ? 100 : TENANTS * 2, (index) => sendAs(index, 'mobius'));
      await lab.waitFor(() => streams.every(hasText), 'text in the streams');

      await lose(lab);
      const lostAt = performance.now();
      const asked = await untilAllAnswered(() => range(TENANTS, (index) => sendAs(index, 'oloid', index % 2 === 0)));
      const backMs = performance.now() - lostAt;
      await lab.redisGroup.restore();
      await lab.untilEnded();

      const refused = asked.filter((sent) => !isWhole(sent));
      return {
        figures: {
          'everything works after (s)': (backMs / 1000).toFixed(1),
          'refused meanwhile': refused.length,
          'whole streams': streams.filter(isWhole).length,
        },
        verdicts: [
          {
            name: 'everything works within 15 s',
            faults: backMs > BACK_WITHIN_MS + SLACK_MS ? [`${(backMs / 1000).toFixed(1)} s`] : [],
          },
          none(
            'what comes meanwhile is whole or 503',
            refused.filter((sent) => sent.last().status !== 503),
          ),
          none(
            'every stream is whole: its worker lives',
            streams.filter((sent) => !isWhole(sent)),
          ),
        ],
      };
    },
  };
}

/** E19. */
export const clusterMasterKilled = masterLost({
  name: 'E19',
  title: 'kill -9 one of three masters of a Redis Cluster amid 100 streams of 8 tenants on 4 shards',
  redis: 'cluster',
  lose: (lab) => lab.redisGroup.killMaster(0),
});

/** E19b: its connections stay open. */
export const clusterMasterHangs = masterLost({
  name: 'E19b',
  title: 'SIGSTOP one of three masters of a Redis Cluster amid 100 streams',
  redis: 'cluster',
  lose: (lab) => lab.redisGroup.pauseMaster(0),
});

/** E19c: a planned fail-over, then a death. */
export const sentinelMasterLost = masterLost({
  name: 'E19c',
  title: 'a planned fail-over under Sentinel amid 100 streams, then kill -9 the new master',
  redis: 'sentinel',
  async lose(lab) {
    await lab.redisGroup.failOver(0);
    await lab.redisGroup.killMaster(0);
  },
});

/** E19d: the keys of a shard go to another master while they are used. */
export const slotMoves = masterLost({
  name: 'E19d',
  title: 'the slot of a shard moves to another master of a Redis Cluster amid 100 streams, three times',
  redis: 'cluster',
  async lose(lab) {
    for (let times = 0; times < 3; times += 1) await lab.redisGroup.moveShard(0);
  },
});
