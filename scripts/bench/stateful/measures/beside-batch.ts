import { setTimeout as pause } from 'node:timers/promises';

import { ask, percentile } from '../lab.ts';
import type { Lab } from '../lab.ts';
import { rounded } from '../measure.ts';
import type { Measure } from '../measure.ts';
import type { Account } from '../system.ts';

const CLIENTS = 8;
const LINES = 5_000;
const WARM_MS = 3_000;
const QUESTION = { content: 'Which way does a river run?', stream: false } as const;

/** Milliseconds per answer, for clients that send their next request as soon as they are answered. */
async function interactive(lab: Lab, account: Account, ms: number): Promise<number[]> {
  const until = performance.now() + ms;
  const times: number[] = [];
  const client = async (_: unknown, index: number) => {
    while (performance.now() < until && !lab.signal.aborted) {
      const { sentAt, endedAt, isWhole, status } = await ask(lab, { account, index }, QUESTION);
      if (!isWhole) throw new Error(`A request beside the batch was answered with ${status}.`);
      times.push(endedAt - sentAt);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }).map(client));
  return times;
}

export const besideBatch: Measure = {
  name: 'batch',
  title: `Complete answers of ${CLIENTS} clients beside a batch of ${LINES} requests`,
  needs: ['batches'],
  async run(lab) {
    const { system, provider, signal } = lab;
    const { submitBatch } = system;
    if (submitBatch === undefined) throw new Error(`${system.name} has no batches.`);
    const ms = lab.size === 'full' ? 15_000 : 3_000;
    await provider.set({ first_token_ms: 150, chunks: 20, chunk_ms: 5 });
    const [caller, owner] = [await system.openAccount({}), await system.openAccount({})];
    await interactive(lab, caller, WARM_MS);
    const alone = await interactive(lab, caller, ms);
    const batch = await submitBatch(owner, LINES);
    await pause(WARM_MS, undefined, { signal });
    const before = (await provider.counts()).calls;
    const beside = await interactive(lab, caller, ms);
    const lines = (await provider.counts()).calls - before - beside.length;
    await batch.cancel();
    return {
      figures: {
        'p95 ms alone': rounded(percentile(alone, 0.95)),
        'p95 ms beside the batch': rounded(percentile(beside, 0.95)),
        'ratio p95': rounded(percentile(beside, 0.95) / percentile(alone, 0.95), 2),
        'ratio p50': rounded(percentile(beside, 0.5) / percentile(alone, 0.5), 2),
        'lines of the batch a second': rounded((lines * 1_000) / ms),
      },
      verdicts: [],
    };
  },
};
