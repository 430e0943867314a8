import mongoose from 'mongoose';
import type { Connection, mongo } from 'mongoose';

import type { ChatMessage } from '../../contracts/chat-request.ts';
import type { Space } from '../../contracts/space.ts';
import { HISTORY_MESSAGES_MAX } from '../../domain/history.ts';
import { inSpace } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { isMongoAway } from '../faults.ts';
import { NOT_DELETED, entityModel } from './entity-repository.ts';
import type { EntityRow, StoredMessage } from './entity-repository.ts';
import { bytesOf, createEntityRoom } from './entity-room.ts';

type StoredRow = mongo.WithId<EntityRow>;

interface Waiting {
  id: mongo.ObjectId;
  resolve: (row: StoredRow | undefined) => void;
  reject: (reason: unknown) => void;
}

/** The driver's types know no `null` for a field that is not there, by which MongoDB asks for it. */
function filterOf(filter: object): mongo.Filter<EntityRow> {
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
function createRowReader(
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

/** A change of one row. */
interface RowChange {
  filter: mongo.Filter<EntityRow>;
  update: mongo.UpdateFilter<EntityRow>;
}

interface WaitingChange extends RowChange {
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
function createRowChanger(rows: mongo.Collection<EntityRow>): (change: RowChange) => Promise<boolean> {
  const waiting: WaitingChange[] = [];
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

  async function write(group: readonly WaitingChange[]): Promise<void> {
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

/** One stored exchange: what the caller submitted and the answer, kept or dropped as one. */
export interface Turn {
  requestId: string;
  /** Place in the order of acceptance. */
  seq: number;
  /** When the delivery claimed the request: an earlier one cannot replace what a later one has stored. */
  claimedAt: number;
  messages: readonly ChatMessage[];
}

export interface StoredEntity {
  /** The id of the row, not of the entity: an entity that is deleted and made again has another one. */
  rowId: string;
  subject?: string;
  grade?: string;
  history: ChatMessage[];
}

interface SaveTurnOptions {
  /** Whether an unknown entity is made. */
  create: boolean;
  now: number;
  /** The row that `find` returned: the turn is stored in no other row. */
  rowId?: string | undefined;
}

/** Every call takes the space first and puts it into its filter. Plain objects only: no document leaves this file. */
export type ConversationRepository = ReturnType<typeof createConversationRepository>;

function toStored(turn: Turn): StoredMessage[] {
  const { requestId, seq, claimedAt } = turn;
  return turn.messages.map(({ role, content }) => ({ role, content, requestId, seq, attempt: claimedAt }));
}

/** Puts the turn behind a history that has nothing of its place or a later one: nearly every turn comes in order. */
function appendTurn(turn: Turn) {
  return { $push: { messages: { $each: toStored(turn), $slice: -HISTORY_MESSAGES_MAX } } };
}

/** History without the turn's own earlier copy, split around its place in the order of acceptance. */
function replaceTurn(turn: Turn) {
  const stored = (...conditions: object[]) => ({
    $filter: { input: { $ifNull: ['$messages', []] }, as: 'message', cond: { $and: conditions } },
  });
  const isOther = { $ne: ['$$message.requestId', turn.requestId] };
  const isMine = { $eq: ['$$message.requestId', turn.requestId] };
  const ofLaterDelivery = stored(isMine, { $gt: ['$$message.attempt', turn.claimedAt] });
  // `$literal`: a message may begin with a dollar sign, which a pipeline would read as a field.
  const mine = { $cond: [{ $eq: [ofLaterDelivery, []] }, { $literal: toStored(turn) }, ofLaterDelivery] };
  const ordered = {
    $concatArrays: [
      stored(isOther, { $lte: ['$$message.seq', turn.seq] }),
      mine,
      stored(isOther, { $gt: ['$$message.seq', turn.seq] }),
    ],
  };
  return { $slice: [ordered, -HISTORY_MESSAGES_MAX] };
}

export function createConversationRepository(connection: Connection) {
  const entities = entityModel(connection);
  // Two calls that each turn makes, with filters of this file alone: mongoose's casting takes a third of their time.
  const rows = connection.collection<EntityRow>(entities.collection.collectionName);
  const read = createRowReader(rows);
  const change = createRowChanger(rows);
  const room = createEntityRoom(connection);

  /** Makes an unknown entity, or one of the tombstone of a deletion that came before the request. */
  async function make(space: Space, entityId: string, seq: number, now: number): Promise<void> {
    const fresh = { messages: [], createdAt: now };
    try {
      const made = await entities.updateOne({ ...inSpace(space), entityId }, { $setOnInsert: fresh }, { upsert: true });
      if (made.upsertedCount === 1) {
        await room.note(space, { entities: 1, bytes: bytesOf({ entityId }) });
        return;
      }
    } catch (error) {
      // Two first requests of one entity at once: the other one made it.
      if (!isDuplicateKey(error)) throw error;
    }
    const { modifiedCount } = await entities.updateOne(
      { ...inSpace(space), entityId, deletedAt: { $exists: true }, forgottenSeq: { $lt: seq } },
      { $set: fresh, $unset: { deletedAt: 1, expiresAt: 1 } },
    );
    if (modifiedCount === 1) await room.note(space, { entities: 1, bytes: bytesOf({ entityId }) });
  }

  async function deleteTurn(
    space: Space,
    entityId: string,
    { requestId, claimedAt }: Pick<Turn, 'requestId' | 'claimedAt'>,
  ): Promise<void> {
    await entities.updateOne(
      { ...inSpace(space), entityId },
      { $pull: { messages: { requestId, attempt: { $lte: claimedAt } } } },
    );
  }

  return {
    /** Undefined: the entity is unknown. */
    async find(space: Space, entityId: string): Promise<StoredEntity | undefined> {
      const row = await read(space, entityId);
      if (row === undefined || row.deletedAt !== undefined) return undefined;
      return {
        rowId: row._id.toHexString(),
        history: row.messages.map(({ role, content }) => ({ role, content })),
        ...(row.subject === undefined ? {} : { subject: row.subject }),
        ...(row.grade === undefined ? {} : { grade: row.grade }),
      };
    },

    /** Throws `conflict` if the space may have no further entity. */
    assertRoom: room.assertFree,

    /**
     * One atomic update: a turn written again for the same request replaces the first, and turns keep the order of
     * acceptance. Nothing is stored of a request that was accepted before the entity or its history was deleted. Safe to
     * repeat.
     */
    async saveTurn(space: Space, entityId: string, turn: Turn, { create, now, rowId }: SaveTurnOptions): Promise<void> {
      if (create) await make(space, entityId, turn.seq, now);
      const notBefore = { $not: { $gte: turn.seq } };
      const row = rowId === undefined ? {} : { _id: mongoose.Types.ObjectId.createFromHexString(rowId) };
      const welcome = { ...row, ...inSpace(space), entityId, ...NOT_DELETED, forgottenSeq: notBefore };
      // A server works over the whole history by a pipeline, which costs twice as much as the same end by `$push`.
      const inOrder = filterOf({ ...welcome, 'messages.seq': notBefore });
      if (await change({ filter: inOrder, update: appendTurn(turn) })) return;
      // Out of order, refused, or stored in a call of several of which one was: a turn replaces itself.
      const update = [{ $set: { messages: replaceTurn(turn) } }];
      await entities.updateOne(welcome, update, { updatePipeline: true });
    },

    /**
     * Deletes what this delivery or an earlier one has stored of a request; what a later one has stored stays. Safe
     * to repeat.
     */
    deleteTurn,

    /** Deletes what `saveTurn` has just stored, with the entity if it made that. `now`: as it was given to `saveTurn`. */
    async takeBack(
      space: Space,
      entityId: string,
      turn: Pick<Turn, 'requestId' | 'claimedAt'>,
      { now }: Pick<SaveTurnOptions, 'now'>,
    ): Promise<void> {
      await deleteTurn(space, entityId, turn);
      // What somebody has given a subject or a grade, or another request uses, is not this request's to take away.
      const { deletedCount } = await entities.deleteOne({
        ...inSpace(space),
        entityId,
        messages: { $size: 0 },
        createdAt: now,
        subject: { $exists: false },
        grade: { $exists: false },
      });
      if (deletedCount === 1) await room.note(space, { entities: -1, bytes: -bytesOf({ entityId }) });
    },
  };
}
