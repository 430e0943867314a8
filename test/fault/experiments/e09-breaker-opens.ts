import { setTimeout as pause } from 'node:timers/promises';

import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { expectThat, isWhole, none, range, SLACK_MS } from './findings.ts';
import { breakerChanges, breakerOf, routeTo } from './routes.ts';

const FAILOVER_MS = 1_000;
const CLIENTS = 16;
const WELL = 'sim?first_token_ms=20&chunks=4&chunk_ms=20';
/** Long enough for two probes that fail: after 10 s, then after 20 s more. */
const FAILING_MS = 33_000;
/** A probe comes at most 60 s after the last one, then everything goes back. */
const BACK_MS = 60_000;

/** E9. The first target fails until its breaker opens, then it recovers; the second one is well all the time. */
export const breakerOpens: Experiment = {
  name: 'E9',
  title: 'a provider answers 500 until its breaker opens, then recovers, with 4 workers',
  lab: { provider: 'echo=1', workers: 4 },
  async run(lab) {
    const tenant = await lab.openTenant(1_000_000_000);
    const failing = { provider: 'first', model: 'sim?fail=status&status=500' };
    await routeTo(lab, [failing, { provider: 'second', model: WELL, priority: 2 }]);
    await pause(SLACK_MS, undefined, { signal: lab.signal });
    const sent: SentRequest[] = [];
    let isOver = false;
    const client = async (number: number) => {
      for (let turn = 0; !isOver && !lab.signal.aborted; turn += 1) {
        const next = lab.caller.send({ url: lab.urlOf(number + turn), tenant, stream: (number + turn) % 2 === 0 });
        sent.push(next);
        await next.ended;
      }
    };
    const startedAt = performance.now();
    const clients = range(CLIENTS, client);
    let openedMs = 0;
    let openedAt = 0;
    let callsMeanwhile: Awaited<ReturnType<typeof lab.providerCounts>> = new Map();
    let failingChanges: Awaited<ReturnType<typeof breakerChanges>> = [];
    try {
      await lab.waitFor(async () => (await breakerOf(lab, 'first'))?.state === 'open', 'the breaker to open');
      openedMs = performance.now() - startedAt;
      openedAt = performance.now();
      await pause(FAILING_MS, undefined, { signal: lab.signal });
      callsMeanwhile = await lab.providerCounts();
      failingChanges = await breakerChanges(lab, 'first');

      await routeTo(lab, [
        { provider: 'first', model: WELL },
        { provider: 'second', model: WELL, priority: 2 },
      ]);
      await lab.waitFor(
        async () => (await breakerOf(lab, 'first'))?.state === 'closed',
        'the breaker to close',
        BACK_MS,
      );
      const count = sent.length;
      await lab.waitFor(() => sent.length > count + CLIENTS * 4, 'requests after the recovery');
    } finally {
      isOver = true;
      await Promise.all(clients);
    }

    const probes = failingChanges.filter(({ to }) => to === 'half_open').length;
    const changes = await breakerChanges(lab, 'first');
    const overlapping = changes.filter(({ to }, index) => to === 'half_open' && changes[index + 1]?.to === 'half_open');
    // Others have heard of it within 1 s; from then on only a probe calls the provider in vain, and calls twice.
    const later = sent.filter(({ readings: [first] }) => {
      const at = first?.sentAt ?? 0;
      return at > openedAt + FAILOVER_MS && at < openedAt + FAILING_MS - SLACK_MS;
    });
    const tried = later.filter((request) => (callsMeanwhile.get(request.id())?.calls ?? 0) > 1);
    const opening = changes.find(({ to }) => to === 'open');
    return {
      figures: { 'opened after ms': Math.round(openedMs), 'failed attempts': opening?.errors ?? 0, probes },
      verdicts: [
        none(
          'every request is answered by the second',
          sent.filter((request) => !isWhole(request)),
        ),
        none(
          'the failover takes less than 1 s',
          sent.filter((request) => request.last().endedAt - request.last().sentAt > FAILOVER_MS + SLACK_MS),
        ),
        expectThat('the breaker probes while the provider fails', probes >= 1, `${probes} probes`),
        expectThat(
          'one probe at a time',
          overlapping.length === 0 && tried.length <= probes,
          `${tried.length} requests tried the provider in ${probes} probes; ${overlapping.length} overlap`,
        ),
      ],
    };
  },
};
