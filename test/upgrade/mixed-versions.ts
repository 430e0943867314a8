import { createBatchClient } from '../fault/client/batch-client.ts';
import type { SentRequest } from '../fault/client/caller.ts';
import type { Experiment } from '../fault/experiment.ts';
import { expectThat, isWhole, longestGapMs, none, range } from '../fault/experiments/findings.ts';
import type { Lab } from '../fault/lab/lab.ts';
import { askLater } from './ask-later.ts';
import { installationOf } from './earlier-version.ts';

const STREAMS = 40;
const COMPLETE = 20;
const CUT = 8;
const PUPILS = 6;
const LARGE = 3;
const LATER = 10;
const LINES = 100;
/** A body of several kilobytes, below the limit of a message. */
const LARGE_WORDS = 600;
/** A ceiling of requests in flight, and a multiple of it that comes one after the other. */
const CEILING = 8;
const UNDER_CEILING = 30;
const TIMEOUT_MS = 120_000;

/** A client that is cut off at the first text and reads on at any ingress. */
async function cutAndResumed(lab: Lab, sent: SentRequest, number: number): Promise<void> {
  await sent.ended;
  await lab.caller.resume(sent, lab.urlOf(number)).ended;
}

/** The ceiling counts requests that have not ended; nobody must be kept out by those that an earlier worker ended. */
async function oneAfterTheOther(lab: Lab): Promise<SentRequest[]> {
  const tenant = await lab.openTenant(1_000_000, { max_in_flight: CEILING });
  const sent: SentRequest[] = [];
  for (let number = 0; number < UNDER_CEILING; number += 1) {
    const one = lab.caller.send({ url: lab.urlOf(number), tenant, stream: false });
    sent.push(one);
    await one.ended;
  }
  return sent;
}

/** Every way to ask, of an installation of the earlier version where one kind of process was replaced by this one's. */
export function mixedVersions(
  name: string,
  title: string,
  earlier: string,
  replaced: 'ingresses' | 'workers',
): Experiment {
  return {
    name,
    title,
    lab: {
      ...installationOf(earlier),
      // Workers from before November 2026 do not know of a tenant's open requests; the ceiling looks again itself.
      ...(replaced === 'ingresses' ? { leftBehind: ['open requests'] } : {}),
      provider: 'echo=1',
      models: { mobius: 'sim?first_token_ms=50&chunks=10&chunk_ms=100' },
    },
    async run(lab) {
      const tenant = await lab.openTenant(100_000_000);
      for (const old of [...lab[replaced]]) {
        await (replaced === 'ingresses' ? lab.startIngress() : lab.startWorker());
        await old.stop();
      }
      const send = (number: number, more: object) => lab.caller.send({ url: lab.urlOf(number), tenant, ...more });
      const streams = range(STREAMS, (number) => send(number, { idempotencyKey: `stream-${number}` }));
      const complete = range(COMPLETE, (number) => send(number, { stream: false, idempotencyKey: `whole-${number}` }));
      const cut = range(CUT, (number) => send(number, { leaveAt: 'first-text' }));
      const pupils = range(PUPILS, (number) =>
        send(number, { isEchoed: false, body: { entity_id: `pupil-${number}` } }),
      );
      const large = range(LARGE, (number) => send(number, { words: LARGE_WORDS }));
      const later = range(LATER, (number) => askLater(lab, tenant, lab.urlOf(number), `later-${number}`));
      const batches = createBatchClient({
        url: () => `${lab.urlOf(0)}/platform/v1`,
        key: tenant.key,
        signal: lab.signal,
      });
      const batch = await batches.submit(LINES);
      await Promise.all(cut.map((sent, number) => cutAndResumed(lab, sent, number + 1)));
      const asked = [...streams, ...complete, ...cut, ...pupils, ...large];
      await Promise.all(asked.map(({ ended }) => ended));
      const ends = await Promise.all(later);
      // A busy machine may have a store answer late.
      const isCompleted = async () => (await batches.find(batch.id).catch(() => batch)).status === 'completed';
      await lab.waitFor(isCompleted, 'the batch to complete', TIMEOUT_MS);
      const { request_counts: counts } = await batches.find(batch.id);
      const again = complete.map((like, number) =>
        send(number + 1, { stream: false, idempotencyKey: `whole-${number}`, like }),
      );
      await Promise.all(again.map(({ ended }) => ended));
      const underCeiling = replaced === 'ingresses' ? await oneAfterTheOther(lab) : [];
      const leftOpen = (await lab.inspector.account(tenant.tenantId)).leftovers['open requests'] ?? 0;

      return {
        figures: {
          'longest gap of a stream (ms)': Math.round(Math.max(...streams.map(longestGapMs))),
          'requests still counted as open': leftOpen,
        },
        verdicts: [
          none(
            'every answer is whole',
            [...asked, ...underCeiling].filter((sent) => !isWhole(sent)),
          ),
          { name: 'every asynchronous request completes', faults: ends.filter((end) => end !== 'completed') },
          expectThat('every line of a batch is completed', counts.completed === LINES, JSON.stringify(counts)),
          expectThat(
            'a repeated key gets the same answer',
            again.every((sent) => isWhole(sent) && sent.last().isReplayed),
            `${again.filter((sent) => !sent.last().isReplayed).length} were run again`,
          ),
        ],
        judge: ({ ledger, provider }) => {
          const charged = ledger.filter(({ type }) => type === 'usage').map(({ requestId }) => requestId);
          const total = asked.length + underCeiling.length + LATER + LINES;
          const more = [...provider].filter(([, { calls }]) => calls !== 1).map(([id, { calls }]) => `${id}: ${calls}`);
          return [
            expectThat(
              'one ledger entry a request',
              charged.length === total && new Set(charged).size === total,
              `${charged.length} entries of ${new Set(charged).size} requests instead of ${total}`,
            ),
            { name: 'one provider call a request', faults: more },
          ];
        },
      };
    },
  };
}
