import { createChance } from '../../../harness/chance.ts';
import type { Chance } from '../../../harness/chance.ts';
import { ask, range, urlOf } from '../lab.ts';
import type { Lab } from '../lab.ts';
import { rounded, verdict } from '../measure.ts';
import type { Measure } from '../measure.ts';
import { send } from '../send.ts';
import type { Reply } from '../send.ts';
import type { Account } from '../system.ts';

const STREAMS = 40;
const CUTS = 3;
const CHUNKS = 40;
const CHUNK_MS = 25;
const WORDS = 160;
const CUT_BYTES_MAX = 3_000;
/** Readings per stream, including cut ones; a stream that is not complete by then is given up. */
const READINGS_MAX = CUTS + 3;

/** Words that occur only once, so that missing and repeated ones can be recognized. */
export const numberedWords = (count: number): string => range(count, (index) => `w${10_000 + index}`).join(' ');

export interface Difference {
  missingBytes: number;
  repeatedBytes: number;
}

/** Compares a text of numbered words with what was read of it. */
export function differenceOf(expected: string, read: string): Difference {
  const counts = Map.groupBy(read.match(/w\d{5}/g) ?? [], (word) => word);
  let missingBytes = 0;
  let repeatedBytes = 0;
  for (const word of expected.split(' ')) {
    const times = counts.get(word)?.length ?? 0;
    if (times === 0) missingBytes += word.length + 1;
    else repeatedBytes += (times - 1) * (word.length + 1);
  }
  return { missingBytes, repeatedBytes };
}

/** Reads one stream in parts, each from the next ingress. */
async function readInParts(lab: Lab, account: Account, index: number, chance: Chance): Promise<Reply[]> {
  const { system } = lab;
  const what = { content: numberedWords(WORDS), stream: true, maxTokens: 1_000 };
  const cut = () => ({ leaveAfterBytes: 1 + chance.below(CUT_BYTES_MAX) });
  const readings = [await ask(lab, { account, index, ...cut() }, what)];
  const requestId = readings[0]?.requestId ?? '';
  while (readings.at(-1)?.isWhole !== true && readings.length < READINGS_MAX) {
    const lastEventId = readings.findLast((reading) => reading.lastEventId !== '')?.lastEventId ?? '';
    const resume = system.resume?.(account, requestId, lastEventId);
    if (resume === undefined) throw new Error(`${system.name} cannot resume.`);
    const leave = readings.length < CUTS ? cut() : {};
    const { requestIdHeader } = system;
    readings.push(await send(urlOf(system, index + readings.length), resume, { ...leave, requestIdHeader }));
  }
  return readings;
}

export const resume: Measure = {
  name: 'resume',
  title: `Streams cut up to ${CUTS} times and read on from the other ingress`,
  needs: ['resume'],
  async run(lab) {
    await lab.provider.set({ echo: true, chunks: CHUNKS, chunk_ms: CHUNK_MS });
    const account = await lab.system.openAccount({});
    const chance = createChance(65);
    const streams = await Promise.all(
      range(lab.size === 'full' ? STREAMS : 8, (index) => readInParts(lab, account, index, chance)),
    );
    const expected = numberedWords(WORDS);
    const differences = streams.map((readings) => differenceOf(expected, readings.map(({ text }) => text).join('')));
    const sum = (of: (one: Difference) => number) => differences.reduce((total, one) => total + of(one), 0);
    const [missing, repeated] = [sum((one) => one.missingBytes), sum((one) => one.repeatedBytes)];
    const cuts = streams.reduce((total, { length }) => total + length - 1, 0);
    const { calls } = await lab.provider.counts();
    return {
      figures: {
        streams: streams.length,
        'cuts a stream': rounded(cuts / streams.length, 1),
        'bytes missing': missing,
        'bytes repeated': repeated,
        'provider calls a stream': rounded(calls / streams.length, 2),
      },
      verdicts: [
        verdict('nothing is missing', missing === 0, `${missing} bytes`),
        verdict('nothing is repeated', repeated === 0, `${repeated} bytes`),
        verdict('the provider is called once', calls === streams.length, `${calls} calls for ${streams.length}`),
      ],
    };
  },
};
