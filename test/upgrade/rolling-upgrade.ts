import { startResumingClients } from '../fault/client/resuming-clients.ts';
import type { Experiment } from '../fault/experiment.ts';
import { expectThat, isWhole, none } from '../fault/experiments/findings.ts';
import { installationOf } from './earlier-version.ts';

const CLIENTS = 12;

/** Whole installation of one version, replaced by another one process after the other, under load. */
export function rollingUpgrade(options: {
  name: string;
  title: string;
  /** Folders of the versions; undefined: this one. */
  from: string | undefined;
  to: string | undefined;
  order: readonly ('ingresses' | 'workers')[];
}): Experiment {
  const { name, title, from, to, order } = options;
  return {
    name,
    title,
    lab: {
      ...(from === undefined ? {} : installationOf(from)),
      provider: 'echo=1',
      models: { mobius: 'sim?chunks=20&chunk_ms=100' },
      settings: { SHUTDOWN_GRACE_SECONDS: '1' },
    },
    async run(lab) {
      const tenant = await lab.openTenant(100_000_000);
      // Streams only: a complete answer that its ingress had to give up is a 503 first, and whole when it is repeated.
      const clients = startResumingClients(lab, CLIENTS, { tenant });
      const { finished } = clients;
      const goOn = () => {
        const enough = finished.length + CLIENTS;
        return lab.waitFor(() => finished.length >= enough, 'more answers');
      };
      await goOn();
      const replace = {
        async ingresses() {
          for (const old of [...lab.ingresses]) {
            const fresh = await lab.startIngress({}, to);
            // All have begun a stream of late, which lasts longer than the old ingress does: it cuts some.
            await goOn();
            clients.replace(old, fresh);
            await old.stop();
            await goOn();
          }
        },
        async workers() {
          for (const old of [...lab.workers]) {
            await lab.startWorker({}, to);
            await old.stop();
            await goOn();
          }
        },
      };
      for (const kind of order) await replace[kind]();
      await clients.end();

      const resumed = finished.filter(({ readings }) => readings.length > 1).length;
      return {
        figures: { finished: finished.length, resumed },
        verdicts: [
          none(
            'no request is lost',
            finished.filter((sent) => !isWhole(sent)),
          ),
          expectThat('clients have to resume', resumed > 0, 'none had to'),
        ],
        judge: ({ ledger }) => {
          const charged = ledger.filter(({ type }) => type === 'usage').map(({ requestId }) => requestId);
          const total = finished.length;
          return [
            expectThat(
              'one ledger entry a request',
              charged.length === total && new Set(charged).size === total,
              `${charged.length} entries of ${new Set(charged).size} requests instead of ${total}`,
            ),
          ];
        },
      };
    },
  };
}
