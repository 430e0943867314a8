import { startResumingClients } from '../client/resuming-clients.ts';
import type { Experiment } from '../experiment.ts';
import type { Victim } from '../lab/victim.ts';
import { expectThat, isWhole, none, SLACK_MS } from './findings.ts';

const CLIENTS = 30;
/** Shorter than a stream, so that clients have to resume. */
const GRACE_SECONDS = 1;
/** What closing takes beside the open requests' grace (api/main.ts). */
const CLOSING_MS = 5_000;
/** A worker ends what it runs: the longest stream, and its closing. */
const WORKER_MS = 20_000;

/** E13. */
export const rollingRestart: Experiment = {
  name: 'E13',
  title: 'rolling restart of both ingresses and both workers under load',
  lab: {
    provider: 'echo=1',
    models: { mobius: 'sim?chunks=30&chunk_ms=100' },
    settings: { SHUTDOWN_GRACE_SECONDS: String(GRACE_SECONDS) },
  },
  async run(lab) {
    const tenant = await lab.openTenant(10_000_000);
    const clients = startResumingClients(lab, CLIENTS, { tenant, words: 60 });
    const { finished } = clients;
    await lab.waitFor(() => finished.length >= CLIENTS, 'the first answers');

    const exits: { name: string; how: string; tookMs: number; limitMs: number }[] = [];
    const stop = async (victim: Victim, limitMs: number) => {
      exits.push({ name: victim.name, limitMs, ...(await victim.stop()) });
    };
    for (const old of [...lab.ingresses]) {
      const fresh = await lab.startIngress();
      clients.replace(old, fresh);
      await stop(old, GRACE_SECONDS * 1_000 + CLOSING_MS);
    }
    for (const old of [...lab.workers]) {
      await lab.startWorker();
      await stop(old, WORKER_MS);
    }
    await clients.end();

    const late = exits.filter(({ tookMs, limitMs }) => tookMs > limitMs + SLACK_MS);
    const resumed = finished.filter(({ readings }) => readings.length > 1).length;
    return {
      figures: {
        resumed,
        ...Object.fromEntries(exits.map(({ name, tookMs }) => [`${name} (s)`, (tookMs / 1000).toFixed(1)])),
      },
      verdicts: [
        none(
          'no request is lost',
          finished.filter((sent) => !isWhole(sent)),
        ),
        expectThat('clients have to resume', resumed > 0, 'none had to'),
        {
          name: 'exits are within the grace',
          faults: late.map(({ name, tookMs }) => `${name} took ${(tookMs / 1000).toFixed(1)} s`),
        },
      ],
      judge: ({ provider }) => [
        {
          name: 'one provider call a request',
          faults: [...provider]
            .filter(([, { calls }]) => calls !== 1)
            .map(([id, { calls }]) => `${id}: ${calls} calls`),
        },
      ],
    };
  },
};
