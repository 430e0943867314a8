import type { Connection, QueryFilter } from 'mongoose';

import { STORED_ANSWER_MS } from '../../contracts/jobs.ts';
import type { KeyMode } from '../../contracts/space.ts';
import type { OutageCode } from '../../domain/request-times.ts';
import { requestIntentModel, rowOfRun } from './request-intents.ts';
import type { RequestIntent, RequestIntentRow } from './request-intents.ts';

/** Only requests sent in these ways may run again. */
export const REPLAY_KINDS = ['async', 'keyed', 'batch'] as const;
export type ReplayKind = (typeof REPLAY_KINDS)[number];

/** An outage failed it, without text and without a charge. */
export interface FailedIntent extends RequestIntent {
  mode: KeyMode;
  kind: Exclude<ReplayKind, 'batch'>;
  /** Milliseconds since the epoch, as the other times here. */
  acceptedAt: number;
  failedAt: number;
  code: OutageCode;
  expiresAt: number;
}

/** Absent fields match all. */
export interface FailedFilter {
  requestIds?: readonly string[];
  shard?: number;
  tenantId?: string;
  code?: OutageCode;
  kind?: ReplayKind;
  /** Time of failure, from here on; milliseconds since the epoch. */
  from?: number;
  before?: number;
}

type FailedPosition = Pick<FailedIntent, 'acceptedAt' | 'requestId'>;

export type FailedIntents = ReturnType<typeof createFailedIntents>;

/** By then, a taken request is in line, or its taker has died; the sweep voids what is not in line after 10 s. */
const LOOK_MS = 5_000;

function toFailed(row: RequestIntentRow): FailedIntent {
  const { _id: requestId, tenantId, mode = 'live', shard, envelopeJson, replays = 0, expiresAt } = row;
  return {
    requestId,
    tenantId,
    mode,
    shard,
    envelopeJson,
    replays,
    kind: row.idempotencyName === undefined ? 'async' : 'keyed',
    acceptedAt: row.acceptedAt,
    // The filter finds only rows with both fields.
    failedAt: row.failedAt ?? 0,
    code: row.failedCode ?? 'model_unavailable',
    expiresAt: expiresAt.getTime(),
  };
}

function toQuery({ requestIds, shard, tenantId, code, kind, from = 0, before }: FailedFilter, now: number) {
  return {
    failedAt: { $gte: from, ...(before === undefined ? {} : { $lt: before }) },
    expiresAt: { $gt: new Date(now) },
    ...(requestIds === undefined ? {} : { _id: { $in: [...requestIds] } }),
    ...(shard === undefined ? {} : { shard }),
    ...(tenantId === undefined ? {} : { tenantId }),
    ...(code === undefined ? {} : { failedCode: code }),
    ...(kind === undefined ? {} : { idempotencyName: { $exists: kind === 'keyed' } }),
    // Lines of batches have no intents: failed-lines.ts.
    ...(kind === 'batch' ? { _id: { $in: [] } } : {}),
  } satisfies QueryFilter<RequestIntentRow>;
}

function isAfter({ acceptedAt, requestId }: FailedPosition) {
  return { $or: [{ acceptedAt: { $gt: acceptedAt } }, { acceptedAt, _id: { $gt: requestId } }] };
}

/** These may be run again (docs/spec.md#replay). */
export function createFailedIntents(connection: Connection) {
  const intents = requestIntentModel(connection);
  return {
    /**
     * Keeps a failed request's intent until `keptUntil` at most. Does nothing if the request has been run again since
     * the intent was read. Safe to repeat.
     */
    async keepFailed(
      intent: RequestIntent,
      { at, code, keptUntil }: { at: number; code: OutageCode; keptUntil?: number },
    ): Promise<void> {
      await intents.updateOne(rowOfRun(intent), {
        $set: { failedAt: at, failedCode: code },
        $unset: { lookAt: 1 },
        ...(keptUntil === undefined ? {} : { $min: { expiresAt: new Date(keptUntil) } }),
      });
    },

    /** In the order of acceptance, after `after`. */
    async list(
      filter: FailedFilter,
      { after, limit }: { after: FailedPosition | undefined; limit: number },
      now: number,
    ): Promise<FailedIntent[]> {
      const query = after === undefined ? toQuery(filter, now) : { $and: [toQuery(filter, now), isAfter(after)] };
      const rows = await intents.find(query).sort({ acceptedAt: 1, _id: 1 }).limit(limit).lean();
      return rows.map(toFailed);
    },

    /** These have not failed, as far as is known. */
    async open(requestIds: readonly string[], now: number): Promise<RequestIntent[]> {
      const rows = await intents
        .find({ _id: { $in: [...requestIds] }, failedAt: null, expiresAt: { $gt: new Date(now) } })
        .lean();
      return rows.map(({ _id: requestId, tenantId, shard, envelopeJson, replays = 0 }) => ({
        requestId,
        tenantId,
        shard,
        envelopeJson,
        replays,
      }));
    },

    count: (filter: FailedFilter, now: number): Promise<number> => intents.countDocuments(toQuery(filter, now)),

    /** Opens a failed request for recover-lost.ts, which has it run. False: taken already, or gone. */
    async take({ requestId, failedAt }: FailedIntent, envelopeJson: string, now: number): Promise<boolean> {
      const { modifiedCount } = await intents.updateOne(
        { _id: requestId, failedAt },
        {
          $set: { envelopeJson, lookAt: now + LOOK_MS, expiresAt: new Date(now + STORED_ANSWER_MS) },
          $unset: { failedAt: 1, failedCode: 1 },
          $inc: { replays: 1 },
        },
      );
      return modifiedCount === 1;
    },

    /** Marks a taken request that could not be accepted as failed again. */
    async restore({ requestId, envelopeJson, failedAt, code, replays, expiresAt }: FailedIntent): Promise<void> {
      await intents.updateOne(
        { _id: requestId, failedAt: null },
        {
          $set: { envelopeJson, failedAt, failedCode: code, replays, expiresAt: new Date(expiresAt) },
          $unset: { lookAt: 1 },
        },
      );
    },
  };
}
