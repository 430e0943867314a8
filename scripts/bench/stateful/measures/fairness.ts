import { setTimeout as pause } from 'node:timers/promises';

import { ask, percentile } from '../lab.ts';
import type { Lab } from '../lab.ts';
import { rounded } from '../measure.ts';
import type { Measure } from '../measure.ts';
import type { Reply } from '../send.ts';
import type { Account } from '../system.ts';

/** Streams that the heavy tenant keeps open. Few chunks a second: the flood is one of requests, not of bytes. */
const FLOOD_CLIENTS = 200;
const EVERY_MS = 250;
const FIRST_TOKEN_MS = 200;
const CHUNKS = 8;
const CHUNK_MS = 250;
const WARM_MS = 5_000;
const QUESTION = { content: 'Which way does a river run?', stream: true, maxTokens: 200 } as const;

/** A request every quarter of a second, whatever became of the last one. */
async function sendLight(lab: Lab, account: Account, count: number): Promise<Reply[]> {
  const replies: Promise<Reply>[] = [];
  for (let index = 0; index < count; index += 1) {
    replies.push(ask(lab, { account, index }, QUESTION));
    await pause(EVERY_MS, undefined, { signal: lab.signal });
  }
  return Promise.all(replies);
}

async function flood(lab: Lab, account: Account, stop: AbortSignal): Promise<Reply[]> {
  const replies: Reply[] = [];
  const client = async (_: unknown, index: number) => {
    while (!stop.aborted) {
      const reply = await ask(lab, { account, index }, QUESTION);
      replies.push(reply);
      // One that is refused comes back soon, as a heavy tenant does.
      if (!reply.isWhole) await pause(EVERY_MS);
    }
  };
  await Promise.all(Array.from({ length: FLOOD_CLIENTS }).map(client));
  return replies;
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
    const stop = new AbortController();
    const startedAt = performance.now();
    const flooded = flood(lab, heavy, stop.signal);
    await pause(WARM_MS, undefined, { signal: lab.signal });
    const replies = await sendLight(lab, light, count);
    stop.abort();
    const floodMs = performance.now() - startedAt;
    const beside = firstTextMs(replies);
    const heavyReplies = await flooded;
    const ratio = (share: number) => rounded(percentile(beside, share) / percentile(alone, share), 2);
    return {
      figures: {
        'alone p50 / p95 ms': `${rounded(percentile(alone, 0.5))} / ${rounded(percentile(alone, 0.95))}`,
        'beside the flood p50 / p95 ms': `${rounded(percentile(beside, 0.5))} / ${rounded(percentile(beside, 0.95))}`,
        'ratio p50': ratio(0.5),
        'ratio p95': ratio(0.95),
        'light: without text': replies.length - beside.length,
        'heavy: streams a second': rounded((heavyReplies.filter(({ isWhole }) => isWhole).length * 1_000) / floodMs, 1),
        'heavy: not whole': heavyReplies.filter(({ isWhole }) => !isWhole).length,
      },
      verdicts: [],
    };
  },
};
