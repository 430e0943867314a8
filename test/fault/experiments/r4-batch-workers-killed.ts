import { createBatchClient, endedOf } from '../client/batch-client.ts';
import type { Experiment } from '../experiment.ts';
import { callsAtMost, expectThat, range } from './findings.ts';

const LINES = { full: 10_000, small: 300 } as const;
/** At most 200 lines a second, on any machine. */
const TIMEOUT_MS = 600_000;

/** R4: one worker leads the batch; both are killed in turn, so the leader is among them. */
export const batchWorkersKilled: Experiment = {
  name: 'R4',
  title: 'kill -9 each of two workers amid a batch of 10,000 lines',
  lab: { models: { mobius: 'sim?first_token_ms=50&chunks=5' } },
  async run(lab, size) {
    const total = LINES[size];
    const tenant = await lab.openTenant(10_000_000);
    const batches = createBatchClient({
      url: () => `${lab.urlOf(0)}/platform/v1`,
      key: tenant.key,
      signal: lab.signal,
    });
    const startedAt = performance.now();
    const { id } = await batches.submit(total);
    for (const share of [0.25, 0.6]) {
      const reached = async () => endedOf(await batches.find(id)) >= total * share;
      await lab.waitFor(reached, `${share * 100} % of the lines`, TIMEOUT_MS);
      const [oldest] = lab.workers;
      await lab.startWorker();
      await oldest?.kill();
    }
    const isCompleted = async () => (await batches.find(id)).status === 'completed';
    await lab.waitFor(isCompleted, 'the batch to complete', TIMEOUT_MS);
    const seconds = (performance.now() - startedAt) / 1000;

    const { request_counts: counts } = await batches.find(id);
    const results = await batches.results(id);
    const answered = results.filter(({ request_id: requestId, response }) => response?.id === requestId);
    const named = new Set(results.map(({ custom_id: customId }) => customId));
    return {
      figures: { 'lines a second': Math.round(total / seconds) },
      verdicts: [
        expectThat('every line is completed', counts.completed === total, JSON.stringify(counts)),
        expectThat('every line has one result', results.length === total, `${results.length} results`),
        expectThat('every result is an answer', answered.length === total, `${answered.length} answers`),
        expectThat(
          'every line is named',
          range(total, (index) => named.has(`line-${index}`)).every(Boolean),
          `${named.size} names`,
        ),
      ],
      judge: (evidence) => {
        const charged = evidence.ledger.filter(({ type }) => type === 'usage').map(({ requestId }) => requestId);
        const wanted = new Set(results.map(({ request_id: requestId }) => requestId));
        return [
          callsAtMost(2, evidence),
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
