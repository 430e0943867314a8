import type { mongo } from 'mongoose';

import type { Space } from '../../../contracts/space.ts';
import { inSpace } from '../spaces.ts';
import type { EntityRow } from './entity-repository.ts';

type StoredRow = mongo.WithId<EntityRow>;

interface Waiting {
  id: mongo.ObjectId;
  resolve: (row: StoredRow | undefined) => void;
  reject: (reason: unknown) => void;
}

/** The driver's types know no `null` for a field that is not there, by which MongoDB asks for it. */
export function filterOf(filter: object): mongo.Filter<EntityRow> {
  return filter;
}

/** Ids of rows, some hundred bytes each; then all are looked for again. */
const KNOWN_MAX = 10_000;
/** A row has a megabyte at the most, and few have a tenth of it. */
const ROWS_AT_ONCE = 16;

/** What is stored was made well-formed as it was written: to look again takes a third of what reading a row does. */
const AS_STORED = { enableUtf8Validation: false } as const;

/**
 * Reads rows that were read before by their ids, all of a turn of the event loop in one call: a worker takes several
 * requests at once. Only ids are kept, so whatever has changed is in what is read. A row that has gone is looked for by
 * its entity's name, as another may have come in its place.
 *
 * Filters hold no more than an index has, as the stand-in for MongoDB else reads other rows of the tenant, too.
 */
export function createRowReader(
  rows: mongo.Collection<EntityRow>,
): (space: Space, entityId: string) => Promise<StoredRow | undefined> {
  const known = new Map<string, mongo.ObjectId>();
  let waiting: Waiting[] = [];

  async function readAll(group: readonly Waiting[]): Promise<void> {
    const [first] = group;
    if (first === undefined) return;
    try {
      if (group.length === 1) {
        first.resolve((await rows.findOne({ _id: first.id }, AS_STORED)) ?? undefined);
        return;
      }
      const found = await rows.find({ _id: { $in: group.map(({ id }) => id) } }, AS_STORED).toArray();
      const byId = new Map(found.map((row) => [row._id.toHexString(), row]));
      for (const { id, resolve } of group) resolve(byId.get(id.toHexString()));
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  function flush(): void {
    const all = waiting;
    waiting = [];
    for (let at = 0; at < all.length; at += ROWS_AT_ONCE) void readAll(all.slice(at, at + ROWS_AT_ONCE));
  }

  function readById(id: mongo.ObjectId): Promise<StoredRow | undefined> {
    return new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ id, resolve, reject });
    });
  }

  return async (space, entityId) => {
    // No id of a tenant has a space.
    const name = `${space.tenantId} ${space.mode} ${entityId}`;
    const id = known.get(name);
    if (id !== undefined) {
      const row = await readById(id);
      if (row !== undefined) return row;
      known.delete(name);
    }
    const row = await rows.findOne(filterOf({ ...inSpace(space), entityId }), AS_STORED);
    if (row === null) return undefined;
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(name, row._id);
    return row;
  };
}
