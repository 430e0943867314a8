import mongoose from 'mongoose';
import type { Connection, Model } from 'mongoose';

import type { ChatMessage } from '../../contracts/chat-request.ts';
import type { Space } from '../../contracts/space.ts';
import { HISTORY_MESSAGES_MAX } from '../../domain/history.ts';
import { inSpace } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';
import { NOT_DELETED, entityModel } from './entity-repository.ts';
import type { EntityRow, StoredMessage } from './entity-repository.ts';
import { bytesOf, createEntityRoom } from './entity-room.ts';

/** One stored exchange, question and answer, is kept or dropped as a whole. */
interface TurnClaim {
  requestId: string;
  /** An earlier delivery cannot replace what a later one has stored. */
  claimedAt: number;
}

export interface Turn extends TurnClaim {
  /** Place in the order of acceptance. */
  seq: number;
  messages: readonly ChatMessage[];
}

export interface StoredEntity {
  /** The row's id, not the entity's: an entity that is deleted and made again has another one. */
  rowId: string;
  subject?: string;
  grade?: string;
  history: ChatMessage[];
}

interface SaveTurnOptions {
  /** Makes an unknown entity. */
  create: boolean;
  now: number;
  /** From `find`: the turn is stored in no other row. */
  rowId?: string | undefined;
}

/** Every call takes the space first and puts it into its filter. No document leaves this file. */
export type ConversationRepository = ReturnType<typeof createConversationRepository>;

function toStored(turn: Turn): StoredMessage[] {
  const { requestId, seq, claimedAt } = turn;
  return turn.messages.flatMap(({ role, content }) =>
    role === 'tool' ? [] : [{ role, content, requestId, seq, attempt: claimedAt }],
  );
}

/** Only behind a history that has nothing of its place or later: nearly every turn comes in order. */
function appendTurn(turn: Turn) {
  return { $push: { messages: { $each: toStored(turn), $slice: -HISTORY_MESSAGES_MAX } } };
}

/** Drops the turn's own earlier copy and splits the history around its place in the order of acceptance. */
function replaceTurn(turn: Turn) {
  const stored = (...conditions: object[]) => ({
    $filter: { input: { $ifNull: ['$messages', []] }, as: 'message', cond: { $and: conditions } },
  });
  const isOther = { $ne: ['$$message.requestId', turn.requestId] };
  const isMine = { $eq: ['$$message.requestId', turn.requestId] };
  const ofLaterDelivery = stored(isMine, { $gt: ['$$message.attempt', turn.claimedAt] });
  // `$literal`: a pipeline would read a message that begins with a dollar sign as a field.
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

/** Deletes what this or an earlier delivery stored of a request; a later one's stays. Safe to repeat. */
async function deleteTurn(
  entities: Model<EntityRow>,
  space: Space,
  entityId: string,
  { requestId, claimedAt }: TurnClaim,
): Promise<void> {
  await entities.updateOne(
    { ...inSpace(space), entityId },
    { $pull: { messages: { requestId, attempt: { $lte: claimedAt } } } },
  );
}

/** Revives the tombstone of a deletion only if that came before the request. */
async function makeEntity(
  entities: ReturnType<typeof entityModel>,
  room: ReturnType<typeof createEntityRoom>,
  space: Space,
  entityId: string,
  seq: number,
  now: number,
): Promise<void> {
  const fresh = { messages: [], createdAt: now };
  try {
    const made = await entities.updateOne({ ...inSpace(space), entityId }, { $setOnInsert: fresh }, { upsert: true });
    if (made.upsertedCount === 1) {
      await room.note(space, { entities: 1, bytes: bytesOf({ entityId }) });
      return;
    }
  } catch (error) {
    // Another first request of the entity made it.
    if (!isDuplicateKey(error)) throw error;
  }
  const { modifiedCount } = await entities.updateOne(
    { ...inSpace(space), entityId, deletedAt: { $exists: true }, forgottenSeq: { $lt: seq } },
    { $set: fresh, $unset: { deletedAt: 1, expiresAt: 1 } },
  );
  if (modifiedCount === 1) await room.note(space, { entities: 1, bytes: bytesOf({ entityId }) });
}

/** Only if the entity was not deleted after the request's acceptance. */
async function putTurn(
  entities: Model<EntityRow>,
  space: Space,
  entityId: string,
  turn: Turn,
  rowId: string | undefined,
): Promise<void> {
  const notBefore = { $not: { $gte: turn.seq } };
  const row = rowId === undefined ? {} : { _id: mongoose.Types.ObjectId.createFromHexString(rowId) };
  const welcome = { ...row, ...inSpace(space), entityId, ...NOT_DELETED, forgottenSeq: notBefore };
  // A pipeline works over the whole history, which costs a server twice as much as `$push`.
  const inOrder = { ...welcome, 'messages.seq': notBefore };
  const { matchedCount } = await entities.updateOne(inOrder, appendTurn(turn));
  if (matchedCount === 1) return;
  // Out of order, or refused.
  const update = [{ $set: { messages: replaceTurn(turn) } }];
  await entities.updateOne(welcome, update, { updatePipeline: true });
}

export function createConversationRepository(connection: Connection) {
  const entities = entityModel(connection);
  const room = createEntityRoom(connection);

  return {
    /** Undefined: the entity is unknown. */
    async find(space: Space, entityId: string): Promise<StoredEntity | undefined> {
      const row = await entities.findOne({ ...inSpace(space), entityId, ...NOT_DELETED }).lean();
      if (row === null) return undefined;
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
     * One atomic update: a turn written again replaces the first, and turns keep the order of acceptance. Stores
     * nothing of a request accepted before a deletion of the entity or its history. Safe to repeat.
     */
    async saveTurn(space: Space, entityId: string, turn: Turn, { create, now, rowId }: SaveTurnOptions): Promise<void> {
      if (create) await makeEntity(entities, room, space, entityId, turn.seq, now);
      await putTurn(entities, space, entityId, turn, rowId);
    },

    deleteTurn: (space: Space, entityId: string, turn: TurnClaim): Promise<void> =>
      deleteTurn(entities, space, entityId, turn),

    /** Undoes `saveTurn`, and the entity if that made it. `now`: as given to `saveTurn`. */
    async voidLater(space: Space, entityId: string, turn: Turn, { now }: SaveTurnOptions): Promise<void> {
      await deleteTurn(entities, space, entityId, turn);
      // The entity stays if it has a subject or a grade, or another request uses it.
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
