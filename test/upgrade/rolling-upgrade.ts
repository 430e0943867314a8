import type { Caller, SentRequest, Tenant } from '../fault/client/caller.ts';
import type { Experiment } from '../fault/experiment.ts';
import { expectThat, isWhole, none, range } from '../fault/experiments/findings.ts';
import type { Ingress } from '../fault/lab/lab.ts';
import { installationOf } from './earlier-version.ts';

const CLIENTS = 12;
const TRIES = 10;

/**
 * Sends one request as a client that resumes does: whatever happens to its connection, it goes on elsewhere. Streams
 * only: a complete answer that its ingress had to give up is a 503 first, and the whole answer when it is repeated.
 */
async function converse(caller: Caller, tenant: Tenant, number: number, anyUrl: () => string): Promise<SentRequest> {
  const call = () => ({ url: anyUrl(), tenant, idempotencyKey: `turn-${number}` });
  const sent = caller.send(call());
  await sent.ended;
  for (let tries = 0; tries < TRIES && sent.last().finishReason === undefined; tries += 1) {
    const { status } = sent.last();
    const isKnown = sent.lastSeq() > 0;
    if (isKnown && status !== 200 && status !== 204 && status !== 0 && status < 500) break;
    await (isKnown ? caller.resume(sent, anyUrl()) : caller.repeat(sent, call())).ended;
  }
  return sent;
}

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
      // The load balancer's list.
      let rotation: Ingress[] = [...lab.ingresses];
      let turns = 0;
      const anyUrl = () => rotation[(turns += 1) % rotation.length]?.url ?? '';
      let isOver = false;
      let numbers = 0;
      const finished: SentRequest[] = [];
      const client = async () => {
        while (!isOver) finished.push(await converse(lab.caller, tenant, (numbers += 1), anyUrl));
      };
      const clients = range(CLIENTS, client);
      const goOn = () => {
        const enough = finished.length + CLIENTS;
        return lab.waitFor(() => finished.length >= enough, 'more answers');
      };
      await goOn();
      const replace = {
        async ingresses() {
          for (const old of [...lab.ingresses]) {
            const fresh = await lab.startIngress({}, to);
            rotation = [...rotation.filter((ingress) => ingress.name !== old.name), fresh];
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
      isOver = true;
      await Promise.all(clients);

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
