import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';

const CHUNKS = 40;
const CHUNK_MS = 200;
/** contract.md section 7, Worker killed. */
const END_WITHIN_MS = 15_000;
/** The clients share their machine with everything that they measure. */
const SLACK_MS = 3_000;

/** E1: `kill -9` one of two workers amid 200 streams. */
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
    const patient = size === 'full' ? 20 : 6;
    const tenant = await lab.openTenant(1_000_000);
    const send = (index: number, model: 'mobius' | 'oloid') =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: CHUNKS * 2, model });
    const talking = Array.from({ length: streams }, (_, index) => send(index, 'mobius'));
    // Their provider has not said anything yet when the worker dies.
    const silent = Array.from({ length: patient }, (_, index) => send(index, 'oloid'));
    const hasText = ({ readings }: SentRequest) => readings.some(({ text }) => text !== '');
    // Some of them have no text yet either.
    await lab.waitFor(() => talking.filter(hasText).length >= streams * 0.9, 'text in the streams');

    await lab.workers[0]?.kill();
    const killedAt = performance.now();
    await lab.untilEnded();

    const interrupted = talking.filter((sent) => sent.last().errorCode !== undefined);
    const late = interrupted.filter((sent) => sent.last().endedAt - killedAt > END_WITHIN_MS + SLACK_MS);
    const ended = talking.concat(silent).filter((sent) => sent.last().finishReason === 'stop');
    const other = talking.filter((sent) => !ended.includes(sent) && sent.last().errorCode !== 'model_unavailable');
    const lost = silent.filter((sent) => sent.last().finishReason !== 'stop');
    const untouched = talking.filter((sent) => sent.last().finishReason === 'stop');
    const slow = untouched.filter(
      (sent) => sent.last().endedAt - sent.last().sentAt > CHUNKS * CHUNK_MS * 2 + END_WITHIN_MS,
    );
    const nameOf = (sent: SentRequest) =>
      `${sent.id()} (${sent.last().errorCode ?? sent.last().finishReason ?? 'no end'})`;
    return {
      figures: { interrupted: interrupted.length },
      verdicts: [
        {
          name: 'interrupts some, not all',
          faults: interrupted.length > 0 && untouched.length > 0 ? [] : [`${interrupted.length} of ${streams}`],
        },
        { name: 'ends within 15 s', faults: late.map(nameOf) },
        { name: 'ends with the typed error', faults: other.map(nameOf) },
        { name: 'runs again what was silent', faults: lost.map(nameOf) },
        { name: 'leaves the others alone', faults: slow.map(nameOf) },
      ],
      judge: ({ provider }) => [
        {
          name: 'at most 2 provider calls',
          faults: [...provider].filter(([, { calls }]) => calls > 2).map(([id, { calls }]) => `${id}: ${calls} calls`),
        },
      ],
    };
  },
};
