import { hasFailed } from '../checker/requests-by-id.ts';
import type { Experiment } from '../experiment.ts';
import { callsAtMost, expectThat, hasText, isWhole, none, range, SLACK_MS } from './findings.ts';

const CHUNKS = 40;
const CHUNK_MS = 200;
/** docs/spec.md#workers. */
const END_WITHIN_MS = 15_000;

/** E1. Some streams have text when their worker dies, and some have not. */
export const workerKilled: Experiment = {
  name: 'E1',
  title: 'kill -9 one of two workers amid 200 streams',
  lab: {
    provider: 'echo=1',
    models: {
      mobius: `sim?chunks=${CHUNKS}&chunk_ms=${CHUNK_MS}`,
      oloid: 'sim?first_token_ms=4000&chunks=5&chunk_ms=50',
    },
  },
  async run(lab, size) {
    const streams = size === 'full' ? 200 : 24;
    const tenant = await lab.openTenant(1_000_000);
    const send = (index: number, model: 'mobius' | 'oloid') =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: CHUNKS * 2, model });
    const talking = range(streams, (index) => send(index, 'mobius'));
    const silent = range(streams / 8, (index) => send(index, 'oloid'));
    await lab.waitFor(() => talking.filter(hasText).length >= streams * 0.9, 'text in the streams');

    await lab.workers[0]?.kill();
    const killedAt = performance.now();
    await lab.untilEnded();

    const interrupted = talking.filter(hasFailed);
    const untouched = talking.filter(isWhole);
    const tookMs = CHUNKS * CHUNK_MS;
    return {
      figures: { interrupted: interrupted.length },
      verdicts: [
        expectThat('some are interrupted', interrupted.length > 0 && untouched.length > 0, `${interrupted.length}`),
        none(
          'they end within 15 s',
          interrupted.filter((sent) => sent.last().endedAt - killedAt > END_WITHIN_MS + SLACK_MS),
        ),
        none(
          'they end with the typed error',
          talking.filter((sent) => !isWhole(sent) && sent.last().errorCode !== 'model_unavailable'),
        ),
        none(
          'what was silent runs again',
          silent.filter((sent) => !isWhole(sent)),
        ),
        none(
          'the others are unaffected',
          untouched.filter((sent) => sent.last().endedAt - sent.last().sentAt > tookMs * 2 + END_WITHIN_MS),
        ),
      ],
      judge: (evidence) => [callsAtMost(2, evidence)],
    };
  },
};
