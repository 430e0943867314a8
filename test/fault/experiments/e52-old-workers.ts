import { setTimeout as pause } from 'node:timers/promises';

import { freePort } from '../../../scripts/embedded/ports.ts';
import { connectRedis, createRedis } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { PROTOCOL, createProcessRegistry } from '../../../shared/redis/stores/process-registry.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { expectThat, isWhole, none } from './findings.ts';

const BEAT_MS = 1_000;
const BEATS = 8;

/**
 * E52. An ingress of this version comes before the last worker of a former one has gone, which is known by its protocol in
 * the registry. test:upgrade replaces the processes of real versions.
 */
export const ingressBesideOldWorker: Experiment = {
  name: 'E52',
  title: 'a new ingress beside a worker that does not know its protocol, under load',
  lab: { provider: 'echo=1', models: { mobius: 'sim?chunks=4&chunk_ms=50' } },
  async run(lab) {
    const redis = createRedis(lab.redis.url, 'worker');
    await connectRedis(redis);
    try {
      const registry = createProcessRegistry(redis, createKeyspace());
      const [known] = (await registry.list()).filter(({ kind }) => kind === 'worker');
      if (known === undefined) throw new Error('No worker is registered.');
      const old = { ...known, id: 'wrk_old', protocol: PROTOCOL - 1 };
      await registry.beat(old);
      const tenant = await lab.openTenant(10_000_000);
      const port = String(await freePort());
      const url = `http://127.0.0.1:${port}`;
      // The lab waits until it is ready.
      const starting = lab.startIngress({ PORT: port });
      const statusOf = async (path: string) => (await fetch(`${url}${path}`).catch(() => undefined))?.status ?? 0;
      await lab.waitFor(async () => (await statusOf('/health/live')) === 200, 'the new ingress to live', 30_000);

      const sent: SentRequest[] = [];
      const ready: number[] = [];
      for (let beat = 0; beat < BEATS; beat += 1) {
        await registry.beat(old);
        sent.push(lab.caller.send({ url: lab.urlOf(beat), tenant, stream: beat % 2 === 0 }));
        ready.push(await statusOf('/health/ready'));
        await pause(BEAT_MS, undefined, { signal: lab.signal });
      }
      await registry.remove(old.id);
      const goneAt = performance.now();
      await starting;
      const waitedMs = performance.now() - goneAt;
      const first = lab.caller.send({ url, tenant });
      await Promise.all([first, ...sent].map(({ ended }) => ended));

      return {
        figures: { 'ready behind the last old worker (s)': (waitedMs / 1_000).toFixed(1) },
        verdicts: [
          expectThat(
            'it is not ready meanwhile',
            ready.every((status) => status === 503),
            ready.join(', '),
          ),
          expectThat('it is ready soon afterwards', waitedMs < 5_000, `after ${waitedMs} ms`),
          none(
            'every answer is whole',
            [first, ...sent].filter((each) => !isWhole(each)),
          ),
        ],
      };
    } finally {
      redis.disconnect();
    }
  },
};
