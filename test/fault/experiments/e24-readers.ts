import { setTimeout as pause } from 'node:timers/promises';

import type { Tenant } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, isWhole, none, range } from './findings.ts';

const READERS_MAX = 4;
const KEY_STREAMS_MAX = 200;
const STREAMS = 60;
const QUIET_MS = 5_000;
/** A stream that is silent is looked at once a second for whoever sent it; its other readers add nothing. */
const READS_MORE_A_SECOND = 1;

interface OpenReader {
  status: number;
  leave(): void;
}

async function openReader(url: string, { key }: Tenant, requestId: string): Promise<OpenReader> {
  const controller = new AbortController();
  const { signal } = controller;
  const headers = { Authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/platform/v1/chat/stream/${requestId}`, { headers, signal });
  return {
    status: response.status,
    leave: () => {
      controller.abort();
    },
  };
}

/** Of all streams, the outbox among them. */
async function readsASecond({ inspector, signal }: Lab): Promise<number> {
  const count = async () => {
    const stats = await inspector.client.info('commandstats');
    return Number(/^cmdstat_xrange:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
  };
  const before = await count();
  await pause(QUIET_MS, undefined, { signal });
  return ((await count()) - before) / (QUIET_MS / 1_000);
}

const countOf = (readers: readonly OpenReader[], status: number) =>
  readers.filter((reader) => reader.status === status).length;

/** E24. One ingress, whose limits these are. */
export const readers: Experiment = {
  name: 'E24',
  title: '100 readers of one request, 240 streams read by one key',
  lab: { ingresses: 1, provider: 'echo=1', models: { mobius: 'sim?first_token_ms=1000&chunks=30&chunk_ms=1500' } },
  async run(lab) {
    const tenant = await lab.openTenant(1_000_000);
    const first = lab.caller.send({ url: lab.urlOf(0), tenant, words: 60 });
    await first.head;
    const alone = await readsASecond(lab);
    const open: OpenReader[] = await Promise.all(range(100, () => openReader(lab.urlOf(0), tenant, first.id())));
    const ofOne = [countOf(open, 200), countOf(open, 429)];

    const together = await readsASecond(lab);

    const more = range(STREAMS, () => lab.caller.send({ url: lab.urlOf(0), tenant, words: 60 }));
    await Promise.all(more.map(({ head }) => head));
    const ofKey = await Promise.all(
      more.flatMap((sent) => range(READERS_MAX, () => openReader(lab.urlOf(0), tenant, sent.id()))),
    );
    open.push(...ofKey);
    const all = countOf(open, 200);
    for (const reader of open) reader.leave();
    await lab.untilEnded();

    return {
      figures: {
        'readers of one request: 200, 429': ofOne.join(', '),
        'streams of one key: 200, 429': [countOf(ofKey, 200) + (ofOne[0] ?? 0), countOf(ofKey, 429)].join(', '),
        'reads of streams a second, before and with readers': `${alone.toFixed(1)}, ${together.toFixed(1)}`,
      },
      verdicts: [
        expectThat('four read one request', ofOne[0] === READERS_MAX, ofOne.join(' and ')),
        expectThat('200 streams are read by one key', all === KEY_STREAMS_MAX, `${all}`),
        expectThat(
          'a stream is read once for all',
          together - alone <= READS_MORE_A_SECOND,
          `${(together - alone).toFixed(1)} more a second`,
        ),
        none(
          'those who sent the requests have their answers',
          [first, ...more].filter((sent) => !isWhole(sent)),
        ),
      ],
    };
  },
};
