import type { Clock } from '../../shared/lifecycle/clock.ts';

/** How often a shard's unacknowledged entries are read again. */
const LOOK_BACK_MS = 5_000;

/**
 * When the settlement leader rereads a shard's unacknowledged outbox entries (a look back): those that this process or
 * an earlier leader has read, but whose booking failed or was interrupted. Between look backs it reads only new
 * entries, so that a record that cannot be booked does not hold up the others.
 */
export interface LookBacks {
  isDue(shard: number): boolean;
  /** The next look back is due after LOOK_BACK_MS: no entry is left, or one that is left was just refused. */
  postpone(shard: number): void;
  /** The next round begins with a look back: a booking was interrupted, or another process may have led meanwhile. */
  makeDue(shard: number): void;
  noteBooked(shard: number): void;
  /** Whether a record was booked since the last call; called at each look back that finds entries. */
  takeBooked(shard: number): boolean;
}

export function createLookBacks(clock: Clock): LookBacks {
  /** By shard; a shard without an entry is due at once. */
  const lookedBackAt = new Map<number, number>();
  const shardsWithBooked = new Set<number>();
  return {
    isDue: (shard) => clock.now() - (lookedBackAt.get(shard) ?? -Infinity) >= LOOK_BACK_MS,
    postpone(shard) {
      lookedBackAt.set(shard, clock.now());
    },
    makeDue(shard) {
      lookedBackAt.delete(shard);
    },
    noteBooked(shard) {
      shardsWithBooked.add(shard);
    },
    takeBooked: (shard) => shardsWithBooked.delete(shard),
  };
}
