import { setTimeout as pause } from 'node:timers/promises';

import type { LedgerLine } from '../checker/evidence.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { isWhole, none, range } from './findings.ts';

const CHUNKS = 60;
const CHUNK_MS = 150;
const MOMENTS = ['posted', 'head', 'first-text', 'before-done'] as const;
/**
 * Workers look every 3 s for readers, and give them 3 s to come back: what nobody reads is cancelled after 6 s. An answer
 * of 18 s leaves a busy machine as much again, twice, and takes no longer where it is cancelled.
 */
const UNREAD_CHUNKS = 2 * CHUNKS;
/** Within the grace of 3 s. */
const RETURN_MS = 1_000;

/** E4. Longer answers than grace and lease together, so that a cancel is seen. */
export const clientLeaves: Experiment = {
  name: 'E4',
  title: 'clients close after the POST, the head, the first chunk, before [DONE] (50 each)',
  lab: {
    provider: 'echo=1',
    models: {
      mobius: `sim?chunks=${CHUNKS}&chunk_ms=${CHUNK_MS}`,
      oloid: `sim?chunks=${UNREAD_CHUNKS}&chunk_ms=${CHUNK_MS}`,
    },
    settings: { DISCONNECT_GRACE_SECONDS: '3' },
  },
  async run(lab, size) {
    const each = size === 'full' ? 50 : 5;
    const impatient = await lab.openTenant(1_000_000, { on_disconnect: 'cancel' });
    const patient = await lab.openTenant(1_000_000, { on_disconnect: 'finish' });
    const words = CHUNKS * 2;
    const unread = { tenant: impatient, model: 'oloid', words } as const;
    const leaving = MOMENTS.flatMap((leaveAt) => {
      const asked = leaveAt === 'before-done' ? { tenant: impatient, words } : unread;
      return range(each, (index) => lab.caller.send({ url: lab.urlOf(index), ...asked, leaveAt }));
    });
    const cancelled = leaving.slice(each, each * 3);
    const finished = [
      ...leaving.slice(each * 3),
      ...range(each / 5, (index) =>
        lab.caller.send({ url: lab.urlOf(index), tenant: patient, words, leaveAt: 'first-text' }),
      ),
    ];
    const complete = range(each, (index) =>
      lab.caller.send({ url: lab.urlOf(index), ...unread, stream: false, leaveAt: 'posted' }),
    );
    const returning = range(each / 5, (index) =>
      lab.caller.send({ url: lab.urlOf(index), tenant: impatient, words, leaveAt: 'first-text' }),
    );
    await Promise.all(
      returning.map(async (sent, index) => {
        await sent.ended;
        await pause(RETURN_MS, undefined, { signal: lab.signal });
        await lab.caller.resume(sent, lab.urlOf(index + 1)).ended;
      }),
    );
    await lab.untilEnded();

    return {
      figures: { left: leaving.length + complete.length },
      verdicts: [
        none(
          'a resume within the grace continues to the end',
          returning.filter((sent) => !isWhole(sent)),
        ),
      ],
      judge: ({ ledger }) => [
        {
          name: 'what nobody reads is cancelled, and charged for its text',
          faults: unlike(cancelled, ledger, (line) => line?.finishReason === 'cancelled'),
        },
        {
          name: 'what was told to finish, or was read to the end, is charged as a whole',
          faults: unlike(finished, ledger, (line) => line?.finishReason === 'stop'),
        },
        {
          // Whether they came in at all is a matter of chance, and their clients never knew their ids.
          name: 'what was left right after the POST is cancelled',
          faults: ledger
            .filter(
              ({ requestId }) =>
                requestId !== undefined && !lab.caller.requests.some((sent) => sent.id() === requestId),
            )
            .filter(({ finishReason }) => finishReason !== 'cancelled')
            .map(({ requestId, finishReason }) => `${requestId ?? ''} (${finishReason ?? ''})`),
        },
      ],
    };
  },
};

function unlike(
  requests: readonly SentRequest[],
  ledger: readonly LedgerLine[],
  isRight: (line: LedgerLine | undefined) => boolean,
): string[] {
  return requests.flatMap((sent) => {
    const line = ledger.find(({ requestId }) => requestId === sent.id());
    return isRight(line) ? [] : [`${sent.id()} (${line?.finishReason ?? 'no entry'})`];
  });
}
