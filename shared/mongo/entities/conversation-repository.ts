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

/** One stored exchange: what the caller submitted and the answer, kept or dropped as one. */
interface TurnClaim {
  requestId: string;
  /** When the delivery claimed the request: an earlier one cannot replace what a later one has stored. */
  claimedAt: number;
}

export interface Turn extends TurnClaim {
  /** Place in the order of acceptance. */
  seq: number;
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
  return turn.messages.flatMap(({ role, content }) =>
    role === 'tool' ? [] : [{ role, content, requestId, seq, attempt: claimedAt }],
  );
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

/**
 * Deletes what this delivery or an earlier one has stored of a request; what a later one has stored stays. Safe
 * to repeat.
 */
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

/** Makes an unknown entity, or one of the tombstone of a deletion that came before the request. */
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
    // Two first requests of one entity at once: the other one made it.
    if (!isDuplicateKey(error)) throw error;
  }
  const { modifiedCount } = await entities.updateOne(
    { ...inSpace(space), entityId, deletedAt: { $exists: true }, forgottenSeq: { $lt: seq } },
    { $set: fresh, $unset: { deletedAt: 1, expiresAt: 1 } },
  );
  if (modifiedCount === 1) await room.note(space, { entities: 1, bytes: bytesOf({ entityId }) });
}

/** Stores a turn of an entity that exists and was not deleted after the request's acceptance. */
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
  // A server works over the whole history by a pipeline, which costs twice as much as the same end by `$push`.
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
     * One atomic update: a turn written again for the same request replaces the first, and turns keep the order of
     * acceptance. Nothing is stored of a request that was accepted before the entity or its history was deleted. Safe to
     * repeat.
     */
    async saveTurn(space: Space, entityId: string, turn: Turn, { create, now, rowId }: SaveTurnOptions): Promise<void> {
      if (create) await makeEntity(entities, room, space, entityId, turn.seq, now);
      await putTurn(entities, space, entityId, turn, rowId);
    },

    deleteTurn: (space: Space, entityId: string, turn: TurnClaim): Promise<void> =>
      deleteTurn(entities, space, entityId, turn),

    /** Deletes what `saveTurn` has just stored, with the entity if it made that. `now`: as it was given to `saveTurn`. */
    async voidLater(space: Space, entityId: string, turn: Turn, { now }: SaveTurnOptions): Promise<void> {
      await deleteTurn(entities, space, entityId, turn);
      // This request may not take away an entity that has a subject or a grade, or that another request uses.
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
