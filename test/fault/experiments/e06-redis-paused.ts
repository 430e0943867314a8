import { setTimeout as pause } from 'node:timers/promises';

import { isRefused } from '../checker/requests-by-id.ts';
import type { Experiment } from '../experiment.ts';
import { countRefused, hasText, isWhole, none, range } from './findings.ts';

const PAUSE_MS = 5_000;
/** The POSTs come from shortly before until shortly after Redis stops answering. */
const SPREAD_MS = 1_000;

/** E6. A refusal whose admission happened all the same must leave neither a charge nor a hold: I2 and I4. */
export const redisPaused: Experiment = {
  name: 'E6',
  title: 'SIGSTOP Redis for 5 s during 100 POSTs',
  lab: { provider: 'echo=1', models: { mobius: 'sim?first_token_ms=100&chunks=5&chunk_ms=20' } },
  async run(lab, size) {
    const count = size === 'full' ? 100 : 20;
    const tenant = await lab.openTenant(1_000_000);
    // The keys are known to the ingresses before.
    await Promise.all(range(4, (index) => lab.caller.send({ url: lab.urlOf(index), tenant }).ended));
    const redis = lab.redis.current();
    const posting = (async () => {
      for (let index = 0; index < count; index += 1) {
        lab.caller.send({ url: lab.urlOf(index), tenant, stream: index % 2 === 0 });
        if (index === count / 2) redis.pause();
        await pause(SPREAD_MS / count, undefined, { signal: lab.signal });
      }
    })();
    await posting;
    await pause(PAUSE_MS - SPREAD_MS / 2, undefined, { signal: lab.signal });
    redis.resume();
    await lab.untilEnded();

    const requests = lab.caller.requests;
    return {
      figures: { refused: countRefused(requests) },
      verdicts: [
        none(
          'every request is answered, or refused with 503',
          requests.filter((sent) =>
            isRefused(sent) ? sent.last().status !== 503 : sent.last().finishReason !== 'stop',
          ),
        ),
      ],
      judge: ({ provider, ledger }) => [
        // Every one of them reached Redis seconds after its caller was told 503.
        none(
          'none that was refused calls a provider',
          requests.filter((sent) => isRefused(sent) && (provider.get(sent.id())?.calls ?? 0) > 0),
        ),
        {
          name: 'none is both refused and billed',
          faults: requests
            .filter((sent) => isRefused(sent) && ledger.some(({ requestId }) => requestId === sent.id()))
            .map((sent) => `${sent.id()}: ${provider.get(sent.id())?.calls ?? 0} calls`),
        },
      ],
    };
  },
};

/** Longer than the leases of readers and the lab's grace for clients that left, together. */
const HANG_MS = 25_000;

/** E6b. No connection breaks, and yet nobody could renew a lease. */
export const redisHangs: Experiment = {
  name: 'E6b',
  title: 'SIGSTOP Redis for 25 s amid 20 streams',
  lab: { provider: 'echo=1', models: { mobius: 'sim?chunks=80&chunk_ms=600' } },
  async run(lab, size) {
    const tenant = await lab.openTenant(1_000_000);
    const streams = range(size === 'full' ? 20 : 5, (index) =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: 100 }),
    );
    await lab.waitFor(() => streams.every(hasText), 'text in the streams');
    lab.redis.current().pause();
    await pause(HANG_MS, undefined, { signal: lab.signal });
    lab.redis.current().resume();
    await lab.untilEnded();
    return {
      verdicts: [
        none(
          'every stream is whole in the end: its client and its worker live',
          streams.filter((sent) => !isWhole(sent)),
        ),
      ],
    };
  },
};
