import { setTimeout as pause } from 'node:timers/promises';

import { createBatchClient, endedOf } from '../client/batch-client.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, SLACK_MS } from './findings.ts';
import { routeTo } from './routes.ts';

const LINES = { full: 10_000, small: 500 } as const;
const WELL = 'sim?first_token_ms=50&chunks=5';
const AWAY = 'sim?fail=status&status=503';
/** Where the outage begins, as a share of the lines. */
const BEGUN = 0.1;
/** A line a second finds out whether the provider is back; each asks it twice. */
const CALLS_PER_SECOND = 4;
/** At most 200 lines a second, on any machine. */
const TIMEOUT_MS = 600_000;

async function callsOf(lab: Lab): Promise<number> {
  return [...(await lab.providerCounts()).values()].reduce((sum, { calls }) => sum + calls, 0);
}

/** E21: `npm run test:fault -- E21 --outage 600` has the outage in its full length. */
export const providerOutage: Experiment = {
  name: 'E21',
  title: "a provider's outage amid a batch of 10,000 lines, for as long as --outage says",
  lab: {},
  async run(lab, size, { outageSeconds }) {
    const total = LINES[size];
    const tenant = await lab.openTenant(10_000_000);
    const batches = createBatchClient({
      url: () => `${lab.urlOf(0)}/platform/v1`,
      key: tenant.key,
      signal: lab.signal,
    });
    const until = (check: (state: Awaited<ReturnType<typeof batches.find>>) => boolean, what: string) =>
      lab.waitFor(async () => check(await batches.find(id)), what, TIMEOUT_MS);
    await routeTo(lab, [{ provider: 'only', model: WELL }]);
    await pause(SLACK_MS, undefined, { signal: lab.signal });
    const startedAt = performance.now();
    const { id } = await batches.submit(total);
    await until((state) => endedOf(state) >= total * BEGUN, 'the first lines');

    await routeTo(lab, [{ provider: 'only', model: AWAY }]);
    await until(({ waiting_for: waitingFor }) => waitingFor === 'provider', 'the batch to wait for its provider');
    // Lines that were on their way have failed by then.
    await pause(SLACK_MS, undefined, { signal: lab.signal });
    const callsBefore = await callsOf(lab);
    await pause(outageSeconds * 1_000, undefined, { signal: lab.signal });
    const calls = (await callsOf(lab)) - callsBefore;
    const meanwhile = await batches.find(id);

    await routeTo(lab, [{ provider: 'only', model: WELL }]);
    const backAt = performance.now();
    await until((state) => endedOf(state) > endedOf(meanwhile), 'lines after the outage');
    const backSeconds = (performance.now() - backAt) / 1_000;
    await until(({ status }) => status === 'completed', 'the batch to complete');
    const seconds = (performance.now() - startedAt) / 1_000;

    const { request_counts: counts } = await batches.find(id);
    const results = await batches.results(id);
    const answered = results.filter(({ request_id: requestId, response }) => response?.id === requestId);
    return {
      figures: {
        'outage, s': outageSeconds,
        'calls in it': calls,
        'back after, s': backSeconds.toFixed(1),
        'all, s': seconds.toFixed(0),
      },
      verdicts: [
        expectThat('no line has failed', counts.failed === 0, JSON.stringify(counts)),
        expectThat('every line is completed', counts.completed === total, JSON.stringify(counts)),
        expectThat('every line has one result, an answer', answered.length === total, `${answered.length} answers`),
        expectThat('the batch says what it waits for', meanwhile.waiting_for === 'provider', JSON.stringify(meanwhile)),
        expectThat(
          'lines are not spent on the outage',
          calls <= CALLS_PER_SECOND * (outageSeconds + SLACK_MS / 1_000),
          `${calls} calls in ${outageSeconds} s`,
        ),
      ],
      judge: (evidence) => {
        const charged = evidence.ledger.filter(({ type }) => type === 'usage').map(({ requestId }) => requestId);
        const wanted = new Set(results.map(({ request_id: requestId }) => requestId));
        return [
          expectThat('one charge a line', charged.length === total, `${charged.length} charges`),
          expectThat(
            'each line is charged',
            new Set(charged).size === total && charged.every((requestId) => wanted.has(requestId ?? '')),
            'other requests were charged',
          ),
        ];
      },
    };
  },
};
