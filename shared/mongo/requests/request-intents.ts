import type { Connection } from 'mongoose';

import { STORED_ANSWER_MS } from '../../contracts/jobs.ts';
import type { RequestEnvelope } from '../../contracts/jobs.ts';
import type { SearchedSpace, Space } from '../../contracts/space.ts';
import type { Principal } from '../../domain/principal.ts';
import type { OutageCode } from '../../domain/request-times.ts';
import { collection, inSpace, insertOnce, spaceFields } from '../collection.ts';
import type { RowOfSpace } from '../collection.ts';

/** An accepted request that must outlive the loss of Redis's last second. Times are ms since the epoch. */
export interface RequestIntentRow extends RowOfSpace {
  _id: string;
  entityId?: string;
  idempotencyName?: string;
  shard: number;
  envelopeJson: string;
  acceptedAt: number;
  /** recover-lost.ts then looks whether Redis still has the request; absent once it has failed. */
  lookAt?: number;
  /** Failed in an outage, without text: it may run again. */
  failedAt?: number;
  failedCode?: OutageCode;
  replays?: number;
  /** Redis alone keeps its answer. */
  isRedisOnly?: boolean;
  /** The caller got 503, and Redis has not said that the request is taken back. Such a row has an id of its own. */
  takenBackKeyId?: string;
  /** The request ended and was charged; the charge is to be given back. */
  isGone?: boolean;
  expiresAt: Date;
}

export const requestIntentModel = collection<RequestIntentRow>('request_intents', [
  [{ tenantId: 1, idempotencyName: 1 }],
  [{ shard: 1, lookAt: 1 }],
  [{ failedAt: 1 }, { sparse: true }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** By then, a living Redis has written the request to its disk. */
const FIRST_LOOK_MS = 5_000;

/** Accepts a request once more under its own id. */
export interface RequestIntent {
  requestId: string;
  tenantId: string;
  shard: number;
  envelopeJson: string;
  /** Counts replays after failures. */
  replays: number;
  /** recover-lost.ts looks after the request then. */
  lookAt?: number | undefined;
}

export interface DueIntent {
  requestId: string;
  tenantId: string;
  /** MongoDB gets no answer of the request. */
  isRedisOnly: boolean;
  /** Counts replays after failures. */
  replays: number;
  /** To be taken back: its ingress may have died before it did so. */
  takenBackKeyId?: string | undefined;
  isGone?: boolean | undefined;
}

/** Prefix: a request that is to be taken back may have an intent, too. */
const VOIDED = 'voided:';

/** Asynchronous and keyed requests until their end. An outage's failures stay for their day: failed-intents.ts. */
export type RequestIntents = ReturnType<typeof createRequestIntents>;

/** Expires with its request's answer; MongoDB deletes expired rows up to a minute late. */
function toIntent(row: RequestIntentRow | null, now: number): RequestIntent | undefined {
  if (row === null || row.expiresAt.getTime() <= now) return undefined;
  const { _id: requestId, tenantId, shard, envelopeJson, replays = 0, lookAt } = row;
  return { requestId, tenantId, shard, envelopeJson, replays, lookAt };
}

/** Leaves failed requests out: a look-up, or a repeated key, must not run them again. */
const OPEN = { failedAt: null } as const;

/** The intent as it was read: not failed, and not run again since. */
export function rowOfRun({ requestId, replays }: RequestIntent) {
  return { _id: requestId, ...OPEN, replays: replays === 0 ? { $in: [null, 0] } : replays };
}

async function keepIntent(
  intents: ReturnType<typeof requestIntentModel>,
  shard: number,
  envelope: RequestEnvelope,
  now: number,
): Promise<void> {
  const { requestId, acceptedAt, kept, request } = envelope;
  const envelopeJson = JSON.stringify(envelope);
  const name = kept?.idempotency?.name;
  const row: RequestIntentRow = {
    _id: requestId,
    ...spaceFields(envelope),
    shard,
    envelopeJson,
    acceptedAt,
    lookAt: now + FIRST_LOOK_MS,
    expiresAt: new Date(acceptedAt + STORED_ANSWER_MS),
    ...(request.entityId === undefined ? {} : { entityId: request.entityId }),
    ...(name === undefined ? {} : { idempotencyName: name }),
    ...(kept?.redisOnly === true ? { isRedisOnly: true } : {}),
  };
  await insertOnce(intents.insertMany([row], { lean: true }));
}

async function keepTakenBack(
  intents: ReturnType<typeof requestIntentModel>,
  requestId: string,
  { shard, keyId, ...space }: Principal,
  now: number,
): Promise<void> {
  const row: RequestIntentRow = {
    _id: VOIDED + requestId,
    ...spaceFields(space),
    shard,
    envelopeJson: '{}',
    acceptedAt: now,
    lookAt: now,
    expiresAt: new Date(now + STORED_ANSWER_MS),
    takenBackKeyId: keyId,
  };
  await insertOnce(intents.insertMany([row], { lean: true }));
}

export function createRequestIntents(connection: Connection) {
  const intents = requestIntentModel(connection);
  return {
    /** Safe to repeat. Requests of more than 15 MiB have no intent (accept.ts). */
    keep: (shard: number, envelope: RequestEnvelope, now: number): Promise<void> =>
      keepIntent(intents, shard, envelope, now),

    /** Safe to repeat. */
    keepTakenBack: (requestId: string, principal: Principal, now: number): Promise<void> =>
      keepTakenBack(intents, requestId, principal, now),

    /** Stores that the charge of a request is to be given back, which is looked after at `lookAt`. Safe to repeat. */
    keepGone: async (requestId: string, lookAt: number): Promise<void> => {
      await intents.updateOne({ _id: VOIDED + requestId }, { $set: { isGone: true, lookAt } });
    },

    forgetTakenBack: async (requestId: string): Promise<void> => {
      await intents.deleteOne({ _id: VOIDED + requestId });
    },

    /** Leaves failed requests out. Undefined: unknown or expired. */
    find: async (space: SearchedSpace, requestId: string, now: number): Promise<RequestIntent | undefined> =>
      toIntent(await intents.findOne({ ...inSpace(space), _id: requestId, ...OPEN }).lean(), now),

    /** The latest one, like `find`. `name`: the hash that stands for the Idempotency-Key. */
    async findNamed(space: Space, name: string, now: number): Promise<RequestIntent | undefined> {
      const row = await intents
        .findOne({ ...inSpace(space), idempotencyName: name, ...OPEN })
        .sort({ acceptedAt: -1 })
        .lean();
      return toIntent(row, now);
    },

    /** For recover-lost.ts, the longest due first, at most `limit`. */
    async due(shard: number, now: number, limit: number): Promise<DueIntent[]> {
      const due = intents.find(
        { shard, lookAt: { $lte: now } },
        { tenantId: 1, isRedisOnly: 1, replays: 1, takenBackKeyId: 1, isGone: 1 },
      );
      const rows = await due.sort({ lookAt: 1 }).limit(limit).lean();
      return rows.map(({ _id, tenantId, isRedisOnly = false, replays = 0, takenBackKeyId, isGone }) => ({
        requestId: takenBackKeyId === undefined ? _id : _id.slice(VOIDED.length),
        tenantId,
        isRedisOnly,
        replays,
        takenBackKeyId,
        isGone,
      }));
    },

    /** Leaves out requests that have failed meanwhile. Safe to repeat. */
    async postpone(requestIds: readonly string[], lookAt: number): Promise<void> {
      if (requestIds.length > 0)
        await intents.updateMany({ _id: { $in: [...requestIds] }, ...OPEN }, { $set: { lookAt } });
    },

    /** Safe to repeat. */
    async forget(requestIds: readonly string[]): Promise<void> {
      if (requestIds.length > 0) await intents.deleteMany({ _id: { $in: [...requestIds] } });
    },

    /** Leaves the intent of a request that has been run again since it was read. */
    async forgetRun(intent: RequestIntent): Promise<void> {
      await intents.deleteOne(rowOfRun(intent));
    },
  };
}
