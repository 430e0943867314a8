import { setTimeout as pause } from 'node:timers/promises';

import type { Experiment } from '../experiment.ts';
import { expectThat, hasText, isWhole, longestGapMs, none, range, SLACK_MS } from './findings.ts';

const CHUNK_MS = 150;
const KILL_EVERY_MS = 2_000;
const ADDED_DELAY_MS = 1_500;

/** E12. */
export const subscribersKilled: Experiment = {
  name: 'E12',
  title: 'CLIENT KILL TYPE pubsub every 2 s during 100 streams',
  lab: { provider: 'echo=1', models: { mobius: `sim?chunks=70&chunk_ms=${CHUNK_MS}` } },
  async run(lab, size) {
    const tenant = await lab.openTenant(1_000_000);
    const streams = range(size === 'full' ? 100 : 12, (index) =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: 140 }),
    );
    await lab.waitFor(() => streams.every(hasText), 'text in the streams');

    let killed = 0;
    while (streams.some((sent) => sent.last().end === 'open')) {
      killed += Number(await lab.inspector.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub'));
      await pause(KILL_EVERY_MS, undefined, { signal: lab.signal });
    }
    await lab.untilEnded();

    const gaps = streams.map(longestGapMs);
    return {
      figures: { 'subscribers killed': killed, 'longest gap (ms)': Math.max(...gaps).toFixed(0) },
      verdicts: [
        expectThat('subscribers are killed', killed >= 4, `${killed}`),
        // No chunk missing or repeated: I1 and I5.
        none(
          'all end whole',
          streams.filter((sent) => !isWhole(sent)),
        ),
        none(
          'the delay is at most 1.5 s',
          streams.filter((sent) => longestGapMs(sent) > CHUNK_MS + ADDED_DELAY_MS + SLACK_MS),
        ),
      ],
    };
  },
};
