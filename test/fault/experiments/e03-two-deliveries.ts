import { Job, Queue } from 'bullmq';

import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { callsAtMost, hasText, isWhole, none, range } from './findings.ts';

const QUEUE = 'interactive';

/** In one step: between a look and a write a later attempt may take the request, and would lose its lease as well. */
const END_LEASE = `
local state, fence = unpack(redis.call('HMGET', KEYS[1], 'state', 'fence'))
if state ~= 'running' or fence ~= '1' then return 0 end
redis.call('HSET', KEYS[1], 'leased', 1)
redis.call('ZADD', KEYS[2], 'XX', 1, ARGV[1])
return 1`;

/**
 * Keeps the leases of the attempts run out, as if their workers had been silent for long, until a later attempt has
 * taken each request: now the fence decides.
 */
async function endLeases(
  { inspector: { client, keys }, waitFor }: Lab,
  requests: readonly SentRequest[],
): Promise<void> {
  const left = new Set(requests.map((sent) => sent.id()));
  await waitFor(async () => {
    for (const id of left) {
      const isFirst = await client.eval(END_LEASE, 2, keys.record(id), keys.inflight, id);
      if (isFirst !== 1) left.delete(id);
    }
    return left.size === 0;
  }, 'later attempts');
}

/** Hands the jobs out again while they run: the lock that the first worker has is not asked. */
async function deliverAgain(lab: Lab, requests: readonly SentRequest[]): Promise<number> {
  const { client, keys } = lab.inspector;
  const queue = new Queue(QUEUE, { connection: client, prefix: keys.tag });
  try {
    const given = await Promise.all(
      requests.map(async (sent) => {
        const token = await client.get(`${queue.toKey(sent.id())}:lock`);
        if (token === null) return false;
        const job = await Job.fromId(queue, sent.id());
        await job?.moveToWait(token);
        return job !== undefined;
      }),
    );
    return given.filter(Boolean).length;
  } finally {
    await queue.close();
  }
}

/** E3. */
export const twoDeliveries: Experiment = {
  name: 'E3',
  title: 'two deliveries of one job at once, for 60 streams',
  lab: {
    provider: 'echo=1',
    // Slow first texts raise a ceiling that is found slowly, and all calls have to run at once here.
    maxInFlight: 100,
    models: { mobius: 'sim?chunks=40&chunk_ms=150', oloid: 'sim?first_token_ms=3000&chunks=20&chunk_ms=100' },
  },
  async run(lab, size) {
    const each = size === 'full' ? 20 : 5;
    const tenant = await lab.openTenant(1_000_000);
    const send = (index: number, model: 'mobius' | 'oloid') =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: 80, model });
    const talking = range(each, (index) => send(index, 'mobius'));
    const owned = range(each, (index) => send(index, 'mobius'));
    await lab.waitFor(() => [...talking, ...owned].every(hasText), 'text in the streams');
    // Asked last: they have to be silent still when their leases end, on a busy machine, too.
    const silent = range(each, (index) => send(index, 'oloid'));
    await lab.waitFor(async () => (await lab.providerCounts()).size >= each * 3, 'all provider calls');

    // A client knows its request's id only with the head; those without text are found by the provider's count.
    const known = new Set([...talking, ...owned].map((sent) => sent.id()));
    const others = [...(await lab.providerCounts()).keys()].filter((id) => !known.has(id));
    const named = others.map((id) => ({ id: () => id }) as SentRequest);
    const [again] = await Promise.all([
      deliverAgain(lab, [...talking, ...owned, ...named]),
      endLeases(lab, [...talking, ...named]),
    ]);
    await lab.untilEnded();

    return {
      figures: { 'delivered again': again },
      verdicts: [
        { name: 'all are delivered again', faults: again === each * 3 ? [] : [`${again} of ${each * 3}`] },
        none(
          'what had text and has lost its lease ends with the typed error',
          talking.filter((sent) => sent.last().errorCode !== 'model_unavailable'),
        ),
        none(
          'what was silent and has lost its lease is finished once, by the later delivery',
          silent.filter((sent) => !isWhole(sent)),
        ),
        none(
          'what keeps its lease is finished by its own attempt',
          owned.filter((sent) => !isWhole(sent)),
        ),
      ],
      judge: (evidence) => [callsAtMost(2, evidence)],
    };
  },
};
