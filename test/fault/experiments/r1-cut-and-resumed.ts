import { createChance } from '../../support/chance.ts';
import type { Reading } from '../checker/evidence.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { isWhole, none, range } from './findings.ts';

const CHUNKS = 40;
/** An event takes about so much of a stream; a cut may come in the middle of one. */
const EVENT_BYTES = 210;
/** A key may resume 600 times a minute. */
const TENANTS = 5;
const STREAM_BYTES = CHUNKS * EVENT_BYTES;

const bytesOf = (readings: readonly Reading[]) =>
  readings.flatMap(({ events }) => events.map(({ seq, data }) => `id: ${seq}\ndata: ${data}\n\n`)).join('');

/** R1: every stream is cut up to three times, and read on from the other ingress. */
export const cutAndResumed: Experiment = {
  name: 'R1',
  title: '200 streams cut at random points, resumed on the other ingress, byte-identical',
  lab: { provider: 'echo=1', models: { mobius: `sim?chunks=${CHUNKS}&chunk_ms=100` } },
  async run(lab, size) {
    const tenants = await Promise.all(range(TENANTS, () => lab.openTenant(1_000_000)));
    const chance = createChance(20_261_121);
    const cut = (of: number) => ({ bytes: 1 + chance.below(of) });
    const different: string[] = [];
    let cuts = 0;

    async function read(index: number): Promise<SentRequest> {
      const times = 1 + chance.below(3);
      const tenant = tenants[index % TENANTS];
      if (tenant === undefined) throw new Error('There is no tenant.');
      const sent = lab.caller.send({ url: lab.urlOf(index), tenant, words: CHUNKS * 2, leaveAt: cut(STREAM_BYTES) });
      await sent.ended;
      for (let time = 1; sent.last().end === 'left'; time += 1) {
        cuts += 1;
        await lab.caller.resume(sent, lab.urlOf(index + time), time < times ? cut(STREAM_BYTES / 2) : undefined).ended;
      }
      for (const ingress of lab.ingresses) {
        const again = await lab.caller.reread(sent, ingress.url);
        if (bytesOf([again]) !== bytesOf(sent.readings))
          different.push(`${sent.id()} on ${ingress.name} (${again.status})`);
      }
      return sent;
    }
    const streams = await Promise.all(range(size === 'full' ? 200 : 16, read));
    return {
      figures: { cuts },
      verdicts: [
        { name: 'what was read in parts is what is read in one', faults: different },
        none(
          'all end whole',
          streams.filter((sent) => !isWhole(sent)),
        ),
      ],
      judge: ({ provider }) => [
        {
          name: 'one provider call a stream',
          faults: [...provider]
            .filter(([, { calls }]) => calls !== 1)
            .map(([id, { calls }]) => `${id}: ${calls} calls`),
        },
      ],
    };
  },
};
