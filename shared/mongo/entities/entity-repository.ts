import type { Connection, Model } from 'mongoose';

import type { Role } from '../../contracts/chat-request.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import type { Space } from '../../contracts/space.ts';
import { collection, toFieldUpdate, listRows, inSpace, spaceFields } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { bytesOf, createEntityRoom, ENTITIES_MAX } from './entity-room.ts';
import type { RowOfSpace } from '../collection.ts';

export interface StoredMessage {
  role: Role;
  content: string;
  /** `seq`: place in the order of acceptance. */
  requestId: string;
  seq: number;
  /** The storing delivery's time of claim. */
  attempt: number;
}

export interface EntityRow extends RowOfSpace {
  entityId: string;
  subject?: string;
  grade?: string;
  name?: string;
  metadataJson?: string;
  messages: StoredMessage[];
  createdAt: number;
  /** The run under an `Idempotency-Key`. */
  createdUnder?: string;
  /** From the latest deletion: requests with a `seq` up to here store nothing. */
  forgottenSeq?: number;
  /** Marks a tombstone: the entity does not exist. */
  deletedAt?: number;
  expiresAt?: Date;
}

export const entityModel = collection<EntityRow>(
  'entities',
  [
    // With the mode last, one index finds an entity in both modes.
    [{ tenantId: 1, entityId: 1, mode: 1 }, { unique: true }],
    [{ tenantId: 1, createdAt: -1 }],
    [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
  ],
  'made',
);

/** The caller sets these; the conversation is kept apart. */
export type EntityFields = Pick<EntityRow, 'subject' | 'grade' | 'name' | 'metadataJson'>;

/** Undefined leaves a field as it is, null takes it away. */
export type EntityChanges = { [Name in keyof EntityFields]: EntityFields[Name] | null | undefined };

export type Entity = EntityFields & Pick<EntityRow, 'entityId' | 'createdAt'>;

type Made = Pick<EntityRow, 'createdAt' | 'createdUnder'>;

/** Gets the ids of the requests that stored a history's messages, oldest first. */
type ChoosePart = (requestIds: readonly string[]) => { from: number; count: number };

/** The time at which something is forgotten, and its place in the order of acceptance. */
interface Moment {
  seq: number;
  now: number;
}

/**
 * A deleted entity leaves a tombstone for two days, longer than any request runs: it refuses what earlier accepted
 * requests want to remember (conversation-repository.ts). Nobody else sees it.
 */
export type EntityRepository = ReturnType<typeof createEntityRepository>;

const TOMBSTONE_MS = 48 * 3_600_000;

const FIELDS = ['subject', 'grade', 'name', 'metadataJson'] as const;
const WITHOUT_MESSAGES = { messages: 0 } as const;
/** Leaves tombstones out. */
export const NOT_DELETED = { deletedAt: null } as const;
const DELETED = { deletedAt: { $exists: true } } as const;

interface HistoryPart {
  ids: string[];
  messages?: StoredMessage[];
}

function replaceFields(fields: EntityFields): { $set: EntityFields; $unset: Record<string, 1> } {
  const absent = FIELDS.filter((name) => fields[name] === undefined).map((name) => [name, 1] as const);
  return { $set: fields, $unset: Object.fromEntries(absent) };
}

/** The chosen part, oldest first; no other text is read. Undefined: unknown. */
async function readHistory(
  entities: Model<EntityRow>,
  space: Space,
  entityId: string,
  choose: ChoosePart,
): Promise<StoredMessage[] | undefined> {
  const filter = { ...inSpace(space), entityId, ...NOT_DELETED };
  const ids = { $map: { input: '$messages', as: 'message', in: '$$message.requestId' } };
  const read = async (more: object) =>
    (await entities.aggregate<HistoryPart>([{ $match: filter }, { $project: { ids, ...more } }])).at(0);
  let known = await read({});
  while (known !== undefined) {
    const { from, count: length } = choose(known.ids);
    if (length === 0) return [];
    const part = await read({ messages: { $slice: ['$messages', from, length] } });
    // A turn came or went in between: the part is chosen again.
    if (part?.ids.join() === known.ids.join()) return part.messages ?? [];
    known = part;
  }
  return undefined;
}

async function removeEntity(
  entities: Model<EntityRow>,
  room: ReturnType<typeof createEntityRoom>,
  space: Space,
  entityId: string,
  { seq, now }: Moment,
  mayCome: () => Promise<boolean>,
): Promise<boolean> {
  const tombstone = {
    $set: { messages: [], deletedAt: now, expiresAt: new Date(now + TOMBSTONE_MS) },
    $max: { forgottenSeq: seq },
    $unset: { createdUnder: 1 as const, ...Object.fromEntries(FIELDS.map((name) => [name, 1] as const)) },
  };
  const filter = { ...inSpace(space), entityId, ...NOT_DELETED };
  const before = await entities.findOneAndUpdate(filter, tombstone, { projection: WITHOUT_MESSAGES }).lean();
  if (before !== null) {
    await room.note(space, { entities: -1, bytes: -bytesOf(before) });
    return true;
  }
  // The entity is unknown: the tombstone only refuses requests that may still come.
  if (!(await mayCome())) return false;
  const update = { ...tombstone, $setOnInsert: { createdAt: now } };
  await entities.updateOne({ ...inSpace(space), entityId }, update, { upsert: true });
  return false;
}

/** Makes, changes and deletes entities, and counts them and their texts in the room of their space. */
function createEntityChanges(entities: Model<EntityRow>, room: ReturnType<typeof createEntityRoom>) {
  /** Keeps the `seq` up to which the tombstone refuses. */
  async function revive(space: Space, entityId: string, fields: EntityFields, made: Made): Promise<boolean> {
    const { $set, $unset } = replaceFields(fields);
    const { matchedCount } = await entities.updateOne(
      { ...inSpace(space), entityId, ...DELETED },
      { $set: { ...$set, ...made, messages: [] }, $unset: { ...$unset, deletedAt: 1, expiresAt: 1 } },
    );
    return matchedCount === 1;
  }

  async function create(space: Space, entityId: string, fields: EntityFields, made: Made): Promise<boolean> {
    try {
      const row: EntityRow = { ...spaceFields(space), entityId, ...fields, ...made, messages: [] };
      await entities.create(row);
      return true;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      return revive(space, entityId, fields, made);
    }
  }

  async function insert(space: Space, entityId: string, fields: EntityFields, made: Made): Promise<boolean> {
    await room.assertFree(space);
    const isMade = await create(space, entityId, fields, made);
    if (isMade) await room.note(space, { entities: 1, bytes: bytesOf({ entityId, ...fields }) });
    return isMade;
  }

  /** Changes that only take away are never refused. Undefined: unknown. */
  async function change(
    space: Space,
    entityId: string,
    changes: EntityChanges,
    toUpdate: () => object,
  ): Promise<Entity | undefined> {
    const isMore = Object.values(changes).some((value) => typeof value === 'string');
    if (isMore) await room.assertFree(space, false);
    const filter = { ...inSpace(space), entityId, ...NOT_DELETED };
    const before = await entities.findOneAndUpdate(filter, toUpdate(), { projection: WITHOUT_MESSAGES }).lean();
    const after = before === null ? undefined : await find(space, entityId);
    if (before !== null && after !== undefined)
      await room.note(space, { entities: 0, bytes: bytesOf(after) - bytesOf(before) });
    return after;
  }

  async function find(space: Space, entityId: string): Promise<Entity | undefined> {
    return (
      (await entities.findOne({ ...inSpace(space), entityId, ...NOT_DELETED }, WITHOUT_MESSAGES).lean()) ?? undefined
    );
  }

  return {
    insert,
    find,
    change,
    remove: (space: Space, entityId: string, moment: Moment, mayCome: () => Promise<boolean>): Promise<boolean> =>
      removeEntity(entities, room, space, entityId, moment, mayCome),
  };
}

export function createEntityRepository(connection: Connection, most = ENTITIES_MAX) {
  const entities = entityModel(connection);
  const { insert, find, change, remove } = createEntityChanges(entities, createEntityRoom(connection, most));

  return {
    /** False: the entity exists. */
    insert,
    find,

    /** Undefined: this run has not created it. */
    async findCreated(space: Space, entityId: string, createdUnder: string): Promise<Entity | undefined> {
      const filter = { ...inSpace(space), entityId, createdUnder, ...NOT_DELETED };
      return (await entities.findOne(filter, WITHOUT_MESSAGES).lean()) ?? undefined;
    },

    /** Replaces all fields; the conversation stays. */
    async put(space: Space, entityId: string, fields: EntityFields, now: number): Promise<'created' | 'replaced'> {
      for (;;) {
        if ((await change(space, entityId, fields, () => replaceFields(fields))) !== undefined) return 'replaced';
        // Another call may make the entity in between: then it is replaced.
        if (await insert(space, entityId, fields, { createdAt: now })) return 'created';
      }
    },

    /** Undefined: unknown. */
    update: (space: Space, entityId: string, changes: EntityChanges): Promise<Entity | undefined> =>
      change(space, entityId, changes, () => toFieldUpdate(changes)),

    /** One row more than the limit; the cursor is an entity's own id. */
    list: (space: Space, query: ListQuery): Promise<Entity[]> =>
      listRows(entities, { ...inSpace(space), ...NOT_DELETED }, query, {
        cursor: 'entityId',
        projection: WITHOUT_MESSAGES,
      }),

    /**
     * Deletes the entity and its conversation. False: unknown; a request in flight will not make it either. `mayCome`:
     * a request that names it may be in flight; without one an unknown entity leaves no tombstone.
     */
    async remove(space: Space, entityId: string, moment: Moment, mayCome: () => Promise<boolean>): Promise<boolean> {
      try {
        return await remove(space, entityId, moment, mayCome);
      } catch (error) {
        // Two upserts at once: the row exists.
        if (!isDuplicateKey(error)) throw error;
        return remove(space, entityId, moment, mayCome);
      }
    },

    history: (space: Space, entityId: string, choose: ChoosePart): Promise<StoredMessage[] | undefined> =>
      readHistory(entities, space, entityId, choose),

    /** Requests up to this place in the order of acceptance store nothing; 0: nothing was deleted. */
    async forgottenSeq(space: Space, entityId: string): Promise<number> {
      const row = await entities.findOne({ ...inSpace(space), entityId }, { forgottenSeq: 1 }).lean();
      return row?.forgottenSeq ?? 0;
    },

    /** False: unknown. */
    async removeHistory(space: Space, entityId: string, { seq }: Moment): Promise<boolean> {
      const { matchedCount } = await entities.updateOne(
        { ...inSpace(space), entityId, ...NOT_DELETED },
        { $set: { messages: [] }, $max: { forgottenSeq: seq } },
      );
      return matchedCount === 1;
    },
  };
}
