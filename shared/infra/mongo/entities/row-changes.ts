import type { mongo } from 'mongoose';

import { isMongoAway } from '../mongo-faults.ts';
import type { EntityRow } from './entity-repository.ts';

/** A change of one row. */
export interface RowChange {
  filter: mongo.Filter<EntityRow>;
  update: mongo.UpdateFilter<EntityRow>;
}

interface Waiting extends RowChange {
  resolve: (hasChanged: boolean) => void;
  reject: (reason: unknown) => void;
}

/** One call to be written while the next one is on its way: more of them only stand in line at the server. */
const CALLS_AT_ONCE = 2;
const CHANGES_A_CALL = 16;
/** A call that takes longer may hang: it holds up nobody else any more. */
const SLOW_MS = 200;

/**
 * Changes rows. What comes while two calls are under way goes together in the next one, which costs both sides little
 * more than a change alone. Nobody waits for a call that hangs, and nobody fails with a call that is not its own.
 *
 * Resolves to false where the row has not changed, or where it is not known which of a call's rows have: so what is asked
 * for must be safe to repeat. Rejects where MongoDB does not serve, and where a change that went alone is refused.
 */
export function createRowChanger(rows: mongo.Collection<EntityRow>): (change: RowChange) => Promise<boolean> {
  const waiting: Waiting[] = [];
  let calls = 0;

  async function changeAll(changes: readonly RowChange[]): Promise<boolean> {
    const [first] = changes;
    if (first !== undefined && changes.length === 1)
      return (await rows.updateOne(first.filter, first.update)).matchedCount === 1;
    const updates = changes.map(({ filter, update }) => ({ updateOne: { filter, update } }));
    try {
      return (await rows.bulkWrite(updates, { ordered: false })).matchedCount === changes.length;
    } catch (error) {
      if (isMongoAway(error)) throw error;
      // What is wrong with one change is not the fault of those beside it: whoever asked repeats it alone.
      return false;
    }
  }

  async function write(group: readonly Waiting[]): Promise<void> {
    calls += 1;
    let isCounted = true;
    const makeRoom = () => {
      if (isCounted) calls -= 1;
      isCounted = false;
      writeWaiting();
    };
    const timer = setTimeout(makeRoom, SLOW_MS);
    try {
      const haveChanged = await changeAll(group);
      for (const { resolve } of group) resolve(haveChanged);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    clearTimeout(timer);
    makeRoom();
  }

  function writeWaiting(): void {
    while (calls < CALLS_AT_ONCE && waiting.length > 0) void write(waiting.splice(0, CHANGES_A_CALL));
  }

  return (change) =>
    new Promise((resolve, reject) => {
      waiting.push({ ...change, resolve, reject });
      writeWaiting();
    });
}
