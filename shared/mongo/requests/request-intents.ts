import type { Connection } from 'mongoose';

import { STORED_ANSWER_MS } from '../../contracts/jobs.ts';
import type { RequestEnvelope } from '../../contracts/jobs.ts';
import type { SearchedSpace, Space } from '../../contracts/space.ts';
import type { Principal } from '../../domain/principal.ts';
import type { OutageCode } from '../../domain/request-times.ts';
import { collection, inSpace, insertOnce, spaceFields } from '../collection.ts';
import type { RowOfSpace } from '../collection.ts';

/** An accepted request that must outlive the loss of Redis's last second; `_id` is its id. Times are ms since the epoch. */
export interface RequestIntentRow extends RowOfSpace {
  _id: string;
  entityId?: string;
  idempotencyName?: string;
  shard: number;
  /** The body as it waits in Redis. */
  envelopeJson: string;
  acceptedAt: number;
  /** When recover-lost.ts of the workers looks whether Redis still has the request; absent once it has failed. */
  lookAt?: number;
  /** When it failed in an outage, without text: it may be run again. */
  failedAt?: number;
  failedCode?: OutageCode;
  /** The number of its replays. */
  replays?: number;
  /** Redis alone keeps its answer. */
  isRedisOnly?: boolean;
  /** Of a row of its own, with an id of its own: its caller got 503, and Redis has not said that it is taken back. */
  takenBackKeyId?: string;
  /** It had ended and is charged, which is to be given back. */
  isGone?: boolean;
  /** When MongoDB deletes it. */
  expiresAt: Date;
}

export const requestIntentModel = collection<RequestIntentRow>('request_intents', [
  [{ tenantId: 1, idempotencyName: 1 }],
  [{ shard: 1, lookAt: 1 }],
  [{ failedAt: 1 }, { sparse: true }],
  [{ expiresAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** By then a Redis that lives has written the request to its disk. */
const FIRST_LOOK_MS = 5_000;

/** Data for accepting a request once more under its own id. */
export interface RequestIntent {
  requestId: string;
  tenantId: string;
  shard: number;
  envelopeJson: string;
  /** The number of its replays after it had failed. */
  replays: number;
  /** When recover-lost.ts looks after it. */
  lookAt?: number | undefined;
}

export interface DueIntent {
  requestId: string;
  tenantId: string;
  /** MongoDB gets no answer of the request. */
  isRedisOnly: boolean;
  /** The number of its replays after it had failed. */
  replays: number;
  /** The request is to be taken back, which its ingress may not have lived to do. */
  takenBackKeyId?: string | undefined;
  isGone?: boolean | undefined;
}

/** A request that is to be taken back may have an intent, too. */
const VOIDED = 'voided:';

/**
 * Requests that were accepted asynchronously or under an Idempotency-Key, from acceptance to their end. Those that fail
 * in an outage stay for the rest of their day: failed-intents.ts.
 */
export type RequestIntents = ReturnType<typeof createRequestIntents>;

/** An intent expires with the answer of its request; MongoDB deletes what has expired up to a minute late. */
function toIntent(row: RequestIntentRow | null, now: number): RequestIntent | undefined {
  if (row === null || row.expiresAt.getTime() <= now) return undefined;
  const { _id: requestId, tenantId, shard, envelopeJson, replays = 0, lookAt } = row;
  return { requestId, tenantId, shard, envelopeJson, replays, lookAt };
}

/** Intents of requests that have not failed: to look a failed one up, or to repeat its key, must not run it again. */
const OPEN = { failedAt: null } as const;

/** Finds the row of an intent if it is as it was read: not failed, and not run again since. */
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
    /**
     * Stores the intent of a request. Safe to repeat. Of more than 15 MiB there is none (accept.ts).
     */
    keep: (shard: number, envelope: RequestEnvelope, now: number): Promise<void> =>
      keepIntent(intents, shard, envelope, now),

    /** Stores that a request is to be taken back. Safe to repeat. */
    keepTakenBack: (requestId: string, principal: Principal, now: number): Promise<void> =>
      keepTakenBack(intents, requestId, principal, now),

    /** Stores that the charge of a request is to be given back, which is looked after at `lookAt`. Safe to repeat. */
    keepGone: async (requestId: string, lookAt: number): Promise<void> => {
      await intents.updateOne({ _id: VOIDED + requestId }, { $set: { isGone: true, lookAt } });
    },

    forgetTakenBack: async (requestId: string): Promise<void> => {
      await intents.deleteOne({ _id: VOIDED + requestId });
    },

    /** The intent of a request that has not failed. Undefined: there is none, or its time is over. */
    find: async (space: SearchedSpace, requestId: string, now: number): Promise<RequestIntent | undefined> =>
      toIntent(await intents.findOne({ ...inSpace(space), _id: requestId, ...OPEN }).lean(), now),

    /** The latest intent under an Idempotency-Key, as `find`. `name`: the hash that stands for the key. */
    async findNamed(space: Space, name: string, now: number): Promise<RequestIntent | undefined> {
      const row = await intents
        .findOne({ ...inSpace(space), idempotencyName: name, ...OPEN })
        .sort({ acceptedAt: -1 })
        .lean();
      return toIntent(row, now);
    },

    /** Requests of a shard that recover-lost.ts has to look after, the longest due first, at most `limit`. */
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

    /** Makes requests due again at `lookAt`, except those that have failed meanwhile. Safe to repeat. */
    async postpone(requestIds: readonly string[], lookAt: number): Promise<void> {
      if (requestIds.length > 0)
        await intents.updateMany({ _id: { $in: [...requestIds] }, ...OPEN }, { $set: { lookAt } });
    },

    /** Deletes intents. Safe to repeat. */
    async forget(requestIds: readonly string[]): Promise<void> {
      if (requestIds.length > 0) await intents.deleteMany({ _id: { $in: [...requestIds] } });
    },

    /** Deletes the intent of a request that has ended, unless the request has been run again since the intent was read. */
    async forgetRun(intent: RequestIntent): Promise<void> {
      await intents.deleteOne(rowOfRun(intent));
    },
  };
}
