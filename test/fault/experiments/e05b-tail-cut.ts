import { setTimeout as pause } from 'node:timers/promises';

import { cutAof, hasMark, markAof } from '../attacks/cut-aof.ts';
import { hasFailed } from '../checker/requests-by-id.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { callsAtMost, hasText, isWhole, none, range } from './findings.ts';

/** With `appendfsync everysec` a power cut takes about so much. */
const LOST_MS = 1_000;
const BEFORE_MS = 1_500;
const SEND_EVERY_MS = 50;
/** The last command of the file is torn. */
const TORN_BYTES = 100;
const RUN_MS = 3_000;

/** E5b. Both workers and all clients live on; what Redis has acknowledged in its last second is gone. */
export const tailCut: Experiment = {
  name: 'E5b',
  title: 'Redis comes back without the last second of its AOF, under 100 streams and 50 short answers',
  lab: {
    provider: 'echo=1',
    models: { mobius: 'sim?chunks=60&chunk_ms=250', oloid: 'sim?first_token_ms=200&chunks=5&chunk_ms=100' },
  },
  async run(lab, size) {
    const tenant = await lab.openTenant(1_000_000);
    const streams = range(size === 'full' ? 100 : 10, (index) =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: 120 }),
    );
    await lab.waitFor(() => streams.every(hasText), 'text in the streams');
    await pause(RUN_MS, undefined, { signal: lab.signal });

    // Some end in the second that is lost, some are accepted in it, and some run through it.
    const short: SentRequest[] = [];
    async function sendFor(ms: number): Promise<void> {
      for (let sent = 0; sent < ms / SEND_EVERY_MS; sent += 1) {
        const index = short.length;
        const call = { url: lab.urlOf(index), tenant, model: 'oloid' as const, stream: index % 3 !== 0 };
        short.push(lab.caller.send(call));
        await pause(SEND_EVERY_MS, undefined, { signal: lab.signal });
      }
    }
    await sendFor(BEFORE_MS);
    const mark = await markAof(lab.inspector);
    await sendFor(LOST_MS);
    await lab.waitFor(() => hasMark(lab.redisDir, mark), 'the mark in the file');
    await lab.redis.current().kill();
    const lost = await cutAof(lab.redisDir, mark, TORN_BYTES);
    await lab.redis.restart();
    await lab.untilEnded();

    const forgotten = short.filter((sent) => !mark.known.has(sent.id()));

    return {
      forgotten: forgotten.map((sent) => sent.id()),
      figures: {
        'lost (kB)': Math.round(lost / 1024),
        'short answers': short.length,
        'of them whole': short.filter(isWhole).length,
        'accepted in the lost second': forgotten.length,
        'of these told that they failed': forgotten.filter(hasFailed).length,
      },
      verdicts: [
        none(
          'every stream is whole in the end: its worker lives',
          streams.filter((sent) => !isWhole(sent)),
        ),
        none(
          'a short answer that was accepted before is whole',
          short.filter((sent) => !forgotten.includes(sent) && !isWhole(sent)),
        ),
        none(
          'one that was accepted in the lost second is whole, or its caller is told before any text',
          forgotten.filter((sent) => !isWhole(sent) && (hasText(sent) || !hasFailed(sent))),
        ),
      ],
      judge: (evidence) => {
        const told = short.filter((sent) => hasFailed(sent) && !hasText(sent)).map((sent) => sent.id());
        const charged = evidence.ledger.filter(({ requestId = '' }) => told.includes(requestId));
        return [
          callsAtMost(1, evidence),
          {
            name: 'nobody is charged for what was refused',
            faults: charged.map(({ requestId = '', finishReason = '' }) => `${requestId} (${finishReason})`),
          },
        ];
      },
    };
  },
};
