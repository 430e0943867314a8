import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { expectThat, isWhole, none, range } from './findings.ts';

const CALLS = 50;

function distinct(sent: readonly SentRequest[], of: (sent: SentRequest) => string): number {
  return new Set(sent.map(of)).size;
}

/** R2: all streamed, all complete, and both at once, half before the answer and half while it runs or after. */
export const oneIdempotencyKey: Experiment = {
  name: 'R2',
  title: '50 parallel calls with one Idempotency-Key, streamed, complete and mixed',
  lab: { provider: 'echo=1', models: { mobius: 'sim?first_token_ms=300&chunks=20&chunk_ms=50' } },
  async run(lab) {
    const tenant = await lab.openTenant(1_000_000);
    const verdicts = [];
    const kinds = { streamed: () => true, complete: () => false, mixed: (index: number) => index % 2 === 0 };
    for (const [kind, isStream] of Object.entries(kinds)) {
      const first = lab.caller.send({ url: lab.urlOf(0), tenant, idempotencyKey: kind, stream: isStream(0) });
      const others = range(CALLS - 1, (index) =>
        lab.caller.send({
          url: lab.urlOf(index + 1),
          tenant,
          idempotencyKey: kind,
          stream: isStream(index + 1),
          like: first,
        }),
      );
      const calls = [first, ...others];
      await Promise.all(calls.map(({ ended }) => ended));
      const bytes = (sent: SentRequest) => JSON.stringify(sent.last().events.map(({ seq, data }) => [seq, data]));
      const streamed = calls.filter(({ stream }) => stream);
      verdicts.push(
        none(
          `${kind}: all are answered`,
          calls.filter((sent) => !isWhole(sent)),
        ),
        expectThat(`${kind}: one request`, distinct(calls, (sent) => sent.id()) === 1, 'several ids'),
        expectThat(`${kind}: one text`, distinct(calls, (sent) => sent.last().text) === 1, 'several texts'),
        expectThat(`${kind}: the same bytes`, distinct(streamed, bytes) <= 1, 'several streams'),
        expectThat(
          `${kind}: all but one are replays`,
          calls.filter((sent) => sent.last().isReplayed).length === CALLS - 1,
          `${calls.filter((sent) => sent.last().isReplayed).length}`,
        ),
      );
    }
    return {
      verdicts,
      judge: ({ provider, ledger }) => {
        const calls = [...provider.values()].reduce((sum, count) => sum + count.calls, 0);
        const charges = ledger.filter(({ type }) => type === 'usage').length;
        return [
          expectThat('one provider call each', calls === 3, `${calls} calls`),
          expectThat('one charge each', charges === 3, `${charges} charges`),
        ];
      },
    };
  },
};
