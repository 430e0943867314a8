import { describe, expect, it } from '@jest/globals';

import { createConclude } from '../../../../workers/pipeline/conclude.ts';
import { Interrupted, Stopped } from '../../../../workers/pipeline/stage.ts';
import type { Claimed } from '../../../../workers/pipeline/stage.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';
import { plainEnvelope } from '../../../support/plain-envelope.ts';
import { idleRun } from '../../../support/idle-run.ts';

const DAY_MS = 86_400_000;

interface Forgotten {
  entityId: string;
  claimedAt: number;
}

function setUp(deleteFails = false) {
  const forgotten: Forgotten[] = [];
  const log = createRecordingLog();
  const conclude = createConclude({
    conversations: {
      deleteTurn(_tenantId, entityId, { claimedAt }) {
        if (deleteFails) return Promise.reject(new Error('away'));
        forgotten.push({ entityId, claimedAt });
        return Promise.resolve();
      },
    },
    log,
  });
  return { conclude, forgotten, log };
}

function runOf({ fence = 1, text = '', entityId }: { fence?: number; text?: string; entityId?: string } = {}): Claimed {
  const run = idleRun({
    claimedAt: 1_000 + fence,
    envelope: plainEnvelope(entityId === undefined ? {} : { entityId }),
  });
  return { ...run, answer: { ...run.answer, text } };
}

describe('a run that did not come to its own end', () => {
  it('answers a bug as one generic error and logs it', async () => {
    const { conclude, log } = setUp();

    const outcome = await conclude(runOf(), new TypeError('x is not a function'));

    expect(outcome?.error).toMatchObject({ code: 'internal_error' });
    expect(JSON.stringify(outcome)).not.toContain('x is not');
    expect(log.errors()).toHaveLength(1);
  });

  it('tells the caller of a test key when midnight comes, not how long it was away at acceptance', async () => {
    const { conclude } = setUp();
    const midnight = Math.ceil(Date.now() / DAY_MS) * DAY_MS;
    const run = runOf();
    run.envelope.acceptedAt = midnight - DAY_MS;

    const outcome = await conclude(run, new Stopped('exhausted', 'allowance'));

    const [before, after] = [midnight - Date.now(), outcome?.error?.retryAfterSeconds ?? 0];
    expect(after * 1_000 - before).toBeLessThan(2_000);
  });

  describe('takes out of its entity what an earlier delivery had stored', () => {
    it('also where it is the first one by its number: Redis may have lost the one before', async () => {
      const { conclude, forgotten } = setUp();

      await conclude(runOf({ fence: 1, entityId: 'pupil' }), new Stopped('cancelled'));

      expect(forgotten).toEqual([{ entityId: 'pupil', claimedAt: 1_001 }]);
    });

    it('and ends all the same when the database is away', async () => {
      const { conclude, log } = setUp(true);

      const outcome = await conclude(runOf({ fence: 2, entityId: 'pupil' }), new Interrupted());

      expect(outcome?.error?.code).toBe('model_unavailable');
      expect(log.errors()).toHaveLength(1);
    });
  });
});
