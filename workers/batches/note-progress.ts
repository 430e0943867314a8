import type { BatchWorkRepository } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { OpenBatch } from './open-batch.ts';
import type { ProviderWatch } from './provider-watch.ts';
import type { KeepLead } from './send-slice.ts';

export interface NoteProgressDeps {
  work: Pick<BatchWorkRepository, 'noteProgress'>;
  watch: Pick<ProviderWatch, 'isDown'>;
  clock: Clock;
}

/** Writes to a batch's row what its tenant sees of its progress, if that has changed. */
export type NoteProgress = (batch: OpenBatch, keepLead: KeepLead) => Promise<void>;

export function createNoteProgress({ work, watch, clock }: NoteProgressDeps): NoteProgress {
  /** Whether lines wait because their tier is down, or all lines that are left wait for their next try. */
  function waitsForProvider({ ready, later, held, inFlight }: OpenBatch): boolean {
    const isHeld = [...held.keys()].some(watch.isDown);
    return isHeld || (later.length > 0 && ready.length === 0 && inFlight.size === 0);
  }

  return async (batch, keepLead) => {
    const { row, counts, inFlight } = batch;
    const waitingFor = batch.waitingFor ?? (waitsForProvider(batch) ? 'provider' : null);
    const hasBegun = inFlight.size > 0 || counts.completed > 0;
    const startedAt = row.startedAt ?? (hasBegun ? clock.now() : undefined);
    const state = { ...counts, waitingFor, ...(startedAt === undefined ? {} : { startedAt }) };
    const text = JSON.stringify({ ...counts, waitingFor, hasBegun });
    if (text === batch.noted) return;
    // A state written by a former leader would stay wrong: the present one writes changes only.
    await keepLead();
    await work.noteProgress(row.tenantId, row._id, state);
    batch.noted = text;
  };
}
