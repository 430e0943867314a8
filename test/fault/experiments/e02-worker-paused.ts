import { setTimeout as pause } from 'node:timers/promises';

import type { Experiment } from '../experiment.ts';
import { callsAtMost, hasText, isWhole, none, range } from './findings.ts';

const PAUSE_MS = 25_000;

/** E2. The worker comes back when others have taken over what it ran, and goes on with it as if nothing had been. */
export const workerPaused: Experiment = {
  name: 'E2',
  title: 'SIGSTOP a worker for 25 s amid 50 streams, then SIGCONT',
  lab: {
    provider: 'echo=1',
    models: { mobius: 'sim?chunks=40&chunk_ms=200', oloid: 'sim?first_token_ms=5000&chunks=10&chunk_ms=100' },
  },
  async run(lab, size) {
    const each = size === 'full' ? 25 : 6;
    const tenant = await lab.openTenant(1_000_000);
    const send = (index: number, model: 'mobius' | 'oloid') =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: 80, model });
    const talking = range(each, (index) => send(index, 'mobius'));
    const silent = range(each, (index) => send(index, 'oloid'));
    await lab.waitFor(() => talking.every(hasText), 'text in the streams');

    const [worker] = lab.workers;
    worker?.pause();
    await pause(PAUSE_MS, undefined, { signal: lab.signal });
    worker?.resume();
    await lab.untilEnded();

    return {
      verdicts: [
        none(
          'what had text ends whole or with the typed error',
          talking.filter((sent) => !isWhole(sent) && sent.last().errorCode !== 'model_unavailable'),
        ),
        none(
          'what was silent runs again',
          silent.filter((sent) => !isWhole(sent)),
        ),
      ],
      judge: (evidence) => [callsAtMost(2, evidence)],
    };
  },
};
