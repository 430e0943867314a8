import { setTimeout as pause } from 'node:timers/promises';

import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, range } from './findings.ts';

const REQUESTS = { full: 500, small: 100 } as const;
/** The first ones come before anything is known. */
const WARM = 80;
/** Requests that the worker runs at once, and how long each takes: with so many callers, each waits for about 10 s. */
const PLACES = 8;
const FIRST_TOKEN_MS = 1_000;
const CLIENTS = 80;
const ERROR_MAX = 0.2;
const POLL_MS = 250;

/** What `GET /chat/{id}` says of a request (docs/guide/chat.md). */
interface RequestState {
  queue: { position: number; estimated_wait_seconds: number } | null;
}

interface Told {
  estimatedSeconds: number;
  waitedSeconds: number;
}

/** Sends a request that is to be looked up, and compares what it is told with what happens. */
async function ask(lab: Lab, key: string, index: number): Promise<Told | undefined> {
  const url = `${lab.urlOf(index)}/platform/v1/chat`;
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', Prefer: 'respond-async' };
  const body = JSON.stringify({ messages: [{ role: 'user', content: `Question ${index}` }] });
  const accepted = await fetch(url, { method: 'POST', headers, body, signal: lab.signal });
  const { id } = (await accepted.json()) as { id: string };
  const looked = await fetch(`${url}/${id}`, { headers, signal: lab.signal });
  const { queue } = (await looked.json()) as RequestState;
  const at = Date.now();
  // A key may look 600 times a minute: the rest is read where the answer would come from.
  const { client, keys } = lab.inspector;
  let startedAt: string | null = null;
  while (startedAt === null) {
    await pause(POLL_MS, undefined, { signal: lab.signal });
    startedAt = await client.hget(keys.record(id), 'startedAt');
  }
  if (queue === null) return undefined;
  return { estimatedSeconds: queue.estimated_wait_seconds, waitedSeconds: (Number(startedAt) - at) / 1_000 };
}

/** E26: whoever waits is told for how long, and it is so. */
export const honestQueue: Experiment = {
  name: 'E26',
  title: '500 requests under steady load are told how long they will wait',
  lab: {
    workers: 1,
    models: { mobius: `sim?first_token_ms=${FIRST_TOKEN_MS}&chunks=1` },
    settings: { WORKER_CONCURRENCY: String(PLACES) },
  },
  async run(lab, size) {
    const total = REQUESTS[size] + WARM;
    const { key } = await lab.openTenant(10_000_000);
    const told: Told[] = [];
    let sent = 0;
    const client = async () => {
      while (sent < total) {
        const index = (sent += 1);
        const one = await ask(lab, key, index);
        if (index > WARM && one !== undefined && one.waitedSeconds > 0) told.push(one);
      }
    };
    await Promise.all(range(CLIENTS, client));

    const errors = told
      .map(({ estimatedSeconds, waitedSeconds }) => Math.abs(estimatedSeconds - waitedSeconds) / waitedSeconds)
      .toSorted((one, other) => one - other);
    const median = errors[Math.floor(errors.length / 2)] ?? Infinity;
    const mean = told.reduce((sum, { waitedSeconds }) => sum + waitedSeconds, 0) / Math.max(1, told.length);
    return {
      figures: { told: told.length, 'median error': median.toFixed(3), 'mean wait, s': mean.toFixed(1) },
      verdicts: [
        expectThat(
          'those who wait are told',
          told.length >= 0.9 * REQUESTS[size],
          `${told.length} of ${REQUESTS[size]}`,
        ),
        expectThat('the median error is small', median <= ERROR_MAX, median.toFixed(3)),
      ],
    };
  },
};
