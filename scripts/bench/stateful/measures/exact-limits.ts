import { setTimeout as pause } from 'node:timers/promises';

import { ask, range } from '../lab.ts';
import type { Lab } from '../lab.ts';
import { verdict } from '../measure.ts';
import type { Measure } from '../measure.ts';
import type { Reply } from '../send.ts';
import type { Account } from '../system.ts';

const LIMIT = 30;
/** How many requests are sent at once. */
const BURST = 4 * LIMIT;
const MINUTE_MS = 60_000;
/** The first request opens a window; the bursts come right before and right after the window's end. */
const FIRST_BURST_MS = 56_000;
const SECOND_BURST_MS = 62_000;
/** The clock's minute also changes between the bursts. */
const CLOCK_TURNS_MS = 59_000;
const QUESTION = { content: 'Which way does a river run?', stream: false } as const;

const isAccepted = ({ status }: Reply) => status === 200;

/**
 * The most requests that were certainly accepted within one minute: sent after its beginning and answered before its
 * end. Others may also have been accepted within it, so the true count can only be higher.
 */
export function worstMinute(accepted: readonly Pick<Reply, 'sentAt' | 'headAt'>[]): number {
  const within = (from: number) =>
    accepted.filter(({ sentAt, headAt }) => sentAt >= from && headAt < from + MINUTE_MS).length;
  return Math.max(0, ...accepted.map(({ sentAt }) => within(sentAt)));
}

/** How long until the clock shows this position within a minute. */
const untilInMinute = (ms: number) => (((ms - (Date.now() % MINUTE_MS)) % MINUTE_MS) + MINUTE_MS) % MINUTE_MS;

async function burst(lab: Lab, account: Account): Promise<Reply[]> {
  return Promise.all(range(BURST, (index) => ask(lab, { account, index }, QUESTION)));
}

export const exactLimits: Measure = {
  name: 'limits',
  title: 'Exact limits over two ingresses',
  needs: ['requestLimits'],
  async run(lab) {
    const { signal, size, provider } = lab;
    const sleep = (ms: number) => pause(Math.max(0, ms), undefined, { signal });
    await provider.set({ tokens: 5 });
    const account = await lab.system.openAccount({ requestsPerMinute: LIMIT });

    // A smoke test does not wait for windows.
    if (size === 'full') await sleep(untilInMinute(MINUTE_MS - CLOCK_TURNS_MS));
    const startedAt = performance.now();
    const opening = await ask(lab, { account }, QUESTION);
    if (size === 'full') await sleep(startedAt + FIRST_BURST_MS - performance.now());
    const first = await burst(lab, account);
    if (size === 'full') await sleep(startedAt + SECOND_BURST_MS - performance.now());
    const second = size === 'full' ? await burst(lab, account) : [];

    const all = [opening, ...first, ...second];
    const refused = all.filter(({ status }) => status === 429);
    const told = refused.at(-1);
    const other = all.length - all.filter(isAccepted).length - refused.length;
    const again = size === 'smoke' ? undefined : await retry(lab, account, told);
    const worst = worstMinute([...all, ...(again === undefined ? [] : [again])].filter(isAccepted));
    const withRetryAfter = refused.filter(({ retryAfterSeconds }) => retryAfterSeconds !== undefined).length;
    return {
      figures: {
        ingresses: lab.system.urls.length,
        'limit a minute': LIMIT,
        'accepted in the worst 60 s': worst,
        'accepted of the first burst': first.filter(isAccepted).length,
        '429 with Retry-After': `${withRetryAfter} of ${refused.length}`,
        'neither accepted nor 429': other,
        'after Retry-After': again === undefined ? '–' : again.status,
      },
      verdicts: [
        verdict('no 60 seconds hold more than the limit', worst <= LIMIT, `${worst} of ${LIMIT}`),
        verdict(
          'the limit can be used up',
          all.slice(0, BURST + 1).filter(isAccepted).length >= LIMIT,
          `${1 + first.filter(isAccepted).length} of ${LIMIT}`,
        ),
        ...(size === 'smoke'
          ? []
          : [verdict('sleeping Retry-After succeeds', again?.status === 200, `status ${again?.status ?? '-'}`)]),
      ],
    };
  },
};

/** Retries when the last refusal said to. */
async function retry(lab: Lab, account: Account, told: Reply | undefined): Promise<Reply | undefined> {
  if (told?.retryAfterSeconds === undefined) return undefined;
  const { headAt, retryAfterSeconds } = told;
  await pause(Math.max(0, headAt + retryAfterSeconds * 1_000 - performance.now()), undefined, { signal: lab.signal });
  return ask(lab, { account }, QUESTION);
}
