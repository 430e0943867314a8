import { setTimeout as pause } from 'node:timers/promises';

import { isRefused } from '../checker/requests-by-id.ts';
import type { Experiment } from '../experiment.ts';
import { countRefused, none, range } from './findings.ts';

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
