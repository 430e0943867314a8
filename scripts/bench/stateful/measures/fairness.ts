import { setTimeout as pause } from 'node:timers/promises';

import { ask, percentile } from '../lab.ts';
import type { Lab } from '../lab.ts';
import { rounded } from '../measure.ts';
import type { Measure } from '../measure.ts';
import type { LoadResult } from '../../load-spec.ts';
import type { Reply } from '../send.ts';
import type { Account } from '../system.ts';

/** Streams that the heavy tenant keeps open. They have few chunks per second: it floods with requests, not bytes. */
const FLOOD_CLIENTS = 200;
const EVERY_MS = 250;
const FIRST_TOKEN_MS = 200;
const CHUNKS = 8;
const CHUNK_MS = 250;
const WARM_MS = 5_000;
const QUESTION = { content: 'Which way does a river run?', stream: true, maxTokens: 200 } as const;

/** Sends a request every quarter of a second, whatever became of the last one. */
async function sendLight(lab: Lab, account: Account, count: number): Promise<Reply[]> {
  const replies: Promise<Reply>[] = [];
  for (let index = 0; index < count; index += 1) {
    replies.push(ask(lab, { account, index }, QUESTION));
    await pause(EVERY_MS, undefined, { signal: lab.signal });
  }
  return Promise.all(replies);
}

/** Sent by other processes, so that the cost does not delay the light tenant's clock. */
async function flood({ system, generators }: Lab, account: Account, seconds: number): Promise<LoadResult[]> {
  const clients = FLOOD_CLIENTS / system.urls.length;
  const { path, headers, body = '' } = system.ask(account, QUESTION);
  const spec = { headers, bodies: [body], mode: 'stream', clients, until: { seconds } } as const;
  return Promise.all(
    system.urls.map((url, index) => {
      const generator = generators[index];
      if (generator === undefined) throw new Error(`There are ${generators.length} load generators.`);
      return generator.run({ ...spec, url: `${url}${path}` });
    }),
  );
}

const firstTextMs = (replies: readonly Reply[]) =>
  replies.flatMap(({ firstTextAt, sentAt }) => (firstTextAt === undefined ? [] : firstTextAt - sentAt));

export const fairness: Measure = {
  name: 'fairness',
  title: 'The first text of a light tenant beside the flood of a heavy one',
  needs: [],
  async run(lab) {
    const count = lab.size === 'full' ? 60 : 12;
    await lab.provider.set({ first_token_ms: FIRST_TOKEN_MS, chunks: CHUNKS, chunk_ms: CHUNK_MS });
    const [light, heavy] = [await lab.system.openAccount({}), await lab.system.openAccount({})];
    await sendLight(lab, light, 4);
    const alone = firstTextMs(await sendLight(lab, light, count));
    const flooded = flood(lab, heavy, (WARM_MS + count * EVERY_MS) / 1_000);
    await pause(WARM_MS, undefined, { signal: lab.signal });
    const replies = await sendLight(lab, light, count);
    const beside = firstTextMs(replies);
    const heavyResults = await flooded;
    const sum = (of: (one: LoadResult) => number) => heavyResults.reduce((total, one) => total + of(one), 0);
    const ratio = (share: number) => rounded(percentile(beside, share) / percentile(alone, share), 2);
    return {
      figures: {
        'alone p50 / p95 ms': `${rounded(percentile(alone, 0.5))} / ${rounded(percentile(alone, 0.95))}`,
        'beside the flood p50 / p95 ms': `${rounded(percentile(beside, 0.5))} / ${rounded(percentile(beside, 0.95))}`,
        'ratio p50': ratio(0.5),
        'ratio p95': ratio(0.95),
        'light: without text': replies.length - beside.length,
        'heavy: streams a second': rounded(
          sum(({ requestsPerSecond }) => requestsPerSecond),
          1,
        ),
        'heavy: not whole': sum(({ errors }) => Object.values(errors).reduce((total, times) => total + times, 0)),
      },
      verdicts: [],
    };
  },
};
