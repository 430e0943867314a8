import { BATCH_LIMITS } from '../../shared/contracts/batches.ts';
import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import { decodeEntry } from '../../shared/contracts/events.ts';
import { batchLineId } from '../../shared/mongo/batches/batch-lines.ts';
import { createBatchRepository } from '../../shared/mongo/batches/batch-repository.ts';
import { spaceFields } from '../../shared/mongo/collection.ts';
import type { BatchLineRow } from '../../shared/mongo/batches/batch-lines.ts';
import type { BatchRow } from '../../shared/mongo/batches/batch-repository.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import type { TestService, TestTenant } from './service.ts';
import { waitFor } from './wait-for.ts';

export interface BatchLab {
  /** A batch of one line for each content, as the ingress would have made it. */
  submit(tenant: TestTenant, contents: readonly string[], more?: Partial<ChatRequest>): Promise<string>;
  row(batchId: string): Promise<BatchRow>;
  lines(batchId: string): Promise<BatchLineRow[]>;
  /** Waits until `check` holds for the batch. */
  until(batchId: string, what: string, check: (row: BatchRow) => boolean, timeoutMs?: number): Promise<BatchRow>;
  cancel(batchId: string): Promise<void>;
  /** Waits until nothing that was admitted runs, and all of it is booked; returns which requests of the tenant were charged. */
  chargedAtRest(tenant: Pick<TestTenant, 'tenantId'>): Promise<string[]>;
}

/** The text of a line's answer. */
export function textOf({ entries = [] }: BatchLineRow): string {
  const deltas = entries.flatMap(({ lastSeq, payload }) => decodeEntry(lastSeq, payload).deltas);
  return deltas.map((literal) => String(JSON.parse(literal))).join('');
}

export function createBatchLab({ models, mongo, redis, keyspace }: TestService): BatchLab {
  const batches = createBatchRepository(mongo);

  async function row(batchId: string): Promise<BatchRow> {
    const found = await models.batches.findById(batchId).lean();
    if (found === null) throw new Error(`There is no batch ${batchId}`);
    return found;
  }

  return {
    row,
    async chargedAtRest({ tenantId }) {
      const keys = keyspace.shard(0);
      await waitFor(async () => {
        const left = (await redis.zcard(keys.inflight)) + (await redis.xlen(keys.outbox));
        return left === 0 ? true : undefined;
      }, 'every request to end and be booked');
      const rows = await models.ledger.find({ tenantId, type: 'usage' }).lean();
      return rows.map(({ requestId }) => String(requestId));
    },
    lines: (batchId) => models.batchLines.find({ batchId }).sort({ index: 1 }).lean(),

    async submit({ tenantId, keyId }, contents, more = {}) {
      const batchId = newId('batch');
      const now = Date.now();
      const key = await models.keys.findById(keyId).lean();
      const removeAt = new Date(now + BATCH_LIMITS.keptMs);
      await batches.insert({
        _id: batchId,
        tenantId,
        keyId,
        shard: 0,
        mode: key?.mode ?? 'live',
        status: 'validating',
        waitingFor: null,
        total: 0,
        completed: 0,
        failed: 0,
        createdAt: now,
        expiresAt: now + BATCH_LIMITS.lifeMs,
        removeAt,
      });
      const lines = contents.map((content, index): BatchLineRow => {
        const request: ChatRequest = {
          messages: [{ role: 'user', content }],
          maxTokens: 100,
          jsonMode: false,
          ...more,
        };
        return {
          _id: batchLineId(batchId, index),
          ...spaceFields({ tenantId, mode: key?.mode ?? 'live' }),
          batchId,
          index,
          customId: `line-${index}`,
          requestId: newId('req'),
          state: 'waiting',
          ...(request.entityId === undefined ? {} : { entityId: request.entityId }),
          requestJson: JSON.stringify(request),
          removeAt,
        };
      });
      await batches.addLines(lines);
      await batches.start(tenantId, batchId, { total: contents.length, failed: 0 });
      return batchId;
    },

    until: (batchId, what, check, timeoutMs = 30_000) =>
      waitFor(
        async () => {
          const found = await row(batchId);
          return check(found) ? found : undefined;
        },
        `the batch ${what}`,
        timeoutMs,
      ),

    async cancel(batchId) {
      await batches.cancel(await row(batchId), batchId, Date.now());
    },
  };
}
