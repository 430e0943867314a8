import Joi from 'joi';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { toListPage } from '../../../shared/contracts/list-page.ts';
import type { BatchRepository } from '../../../shared/mongo/batches/batch-repository.ts';
import type { BatchQueue } from '../../../shared/requests/queue-store.ts';
import { inTime } from '../../../shared/redis/time-limits.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { accepted, defineEndpoint, ok, exampleList, json, listQuery } from '../../contract/endpoint.ts';
import { found } from '../../contract/path-parameters.ts';
import type { TenantEvents } from '../../contract/tenant-events.ts';
import { chatWireSchema } from '../../chat/chat-body.ts';
import { completionsWireSchema } from '../../chat/completions-body.ts';
import type { RelayTimes } from '../../relay/answer.ts';
import { getBatchResults } from './batch-results.ts';
import { batchResource } from './batches-resource.ts';
import { batchFieldsSchema } from './read-batch.ts';
import { startReceived } from './receive-batch.ts';
import { batchItemSchema } from './to-line.ts';

export interface BatchesDeps {
  batches: BatchRepository;
  batchQueue: BatchQueue;
  events: TenantEvents;
  relayTimes: RelayTimes;
  clock: Clock;
}

/** A request with a valid body. The errors of an invalid request go into its own result. */
const itemSchema = batchItemSchema.keys({
  body: Joi.alternatives(chatWireSchema, completionsWireSchema)
    .required()
    .description('As for the endpoint that `url` names; its answer is complete.'),
});
const bodySchema = batchFieldsSchema.keys({
  requests: Joi.array().items(itemSchema).min(1).max(BATCH_LIMITS.linesMax).required(),
});

const ITEMS = [
  { custom_id: 'greeting', body: { messages: [{ role: 'user', content: 'Say hello.' }] } },
  { custom_id: 'sum', body: { messages: [{ role: 'user', content: 'What is 2 + 3?' }], max_tokens: 50 } },
];
const LINES = ITEMS.map((item) => `${JSON.stringify(item)}\n`).join('');
const ACCEPTED = {
  ...batchResource.example,
  request_counts: { total: 2, completed: 0, failed: 0 },
  started_at: null,
  estimated_completion_at: null,
};
const MEBIBYTES_MAX = BATCH_LIMITS.bytesMax / 1024 / 1024;

const createBatch = defineEndpoint({
  method: 'POST',
  path: '/batches',
  scopes: ['chat'],
  ownLimit: { perMinute: BATCH_LIMITS.perMinute, of: 'tenant' },
  tag: 'Batches',
  summary: 'Create a batch',
  description: `As JSON, or as NDJSON with one request a line; at most ${MEBIBYTES_MAX} MiB. Each is a request of \`POST /chat\`, or in the form of OpenAI's batches (\`method\`, \`url\`, \`body\`) of \`POST /chat/completions\`, with its own id and charge. An invalid request has an error as its result; the batch is refused only for what concerns it as a whole, or where no request is valid. An account may call this ${BATCH_LIMITS.perMinute} times a minute with all its keys, and write ${BATCH_LIMITS.writtenBytesPerMinute / 1024 / 1024} MiB; refused calls count, too.`,
  body: {
    kind: 'batch',
    name: 'NewBatch',
    schema: bodySchema,
    others: { 'application/x-ndjson': { name: 'BatchItem', schema: itemSchema } },
    // The body was already read and stored while it arrived (receive-batch.ts).
    read: () => undefined,
  },
  answers: { 202: json('The batch; its state is at `Location`.', batchResource.schema, ['Location']) },
  examples: {
    inline: {
      summary: 'As JSON',
      body: { requests: ITEMS, metadata: batchResource.example['metadata'] },
      status: 202,
      answer: ACCEPTED,
    },
    lines: {
      summary: 'As lines',
      body: LINES,
      contentType: 'application/x-ndjson',
      status: 202,
      answer: { ...ACCEPTED, metadata: null },
    },
  },
  async handle({ res, actor }, { events, clock }: BatchesDeps) {
    const row = await startReceived(res);
    await events.emit(actor, 'batch.created', row._id, { requests: row.total });
    return accepted(batchResource.of(row, clock.now()), `/platform/v1/batches/${row._id}`);
  },
});

const listBatches = defineEndpoint({
  method: 'GET',
  path: '/batches',
  scopes: ['chat'],
  tag: 'Batches',
  summary: 'List batches',
  query: listQuery,
  answers: { 200: json('A page of batches.', batchResource.listSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(batchResource.example) } },
  async handle({ principal, query }, { batches, clock }: BatchesDeps) {
    const rows = await batches.list(principal, query);
    return ok(toListPage(rows, query.limit, (row) => batchResource.of(row, clock.now())));
  },
});

const getBatch = defineEndpoint({
  method: 'GET',
  path: '/batches/:batchId',
  scopes: ['chat'],
  tag: 'Batches',
  summary: 'Retrieve a batch',
  answers: { 200: json('The batch.', batchResource.schema) },
  examples: { one: { status: 200, answer: batchResource.example } },
  async handle({ principal, params }, { batches, clock }: BatchesDeps) {
    const row = found(await batches.find(principal, params.batchId), 'batchId');
    return ok(batchResource.of(row, clock.now()));
  },
});

const cancelBatch = defineEndpoint({
  method: 'POST',
  path: '/batches/:batchId/cancel',
  scopes: ['chat'],
  tag: 'Batches',
  summary: 'Cancel a batch',
  description: 'Requests in progress run to their end; the others are not sent. A batch that has ended stays as it is.',
  answers: { 200: json('The batch.', batchResource.schema) },
  examples: {
    running: {
      status: 200,
      answer: {
        ...batchResource.example,
        status: 'cancelling',
        estimated_completion_at: null,
        cancelled_at: 1_795_255_260,
      },
    },
  },
  async handle({ principal, params, actor }, { batches, batchQueue, events, clock }: BatchesDeps) {
    const { batchId } = params;
    const cancelled = found(await batches.cancel(principal, batchId, clock.now()), 'batchId');
    if (cancelled.isChanged) {
      // The dispatcher notices by itself only after a while, which grows with the lines to send; then it also closes
      // the batch.
      await inTime(batchQueue.close(cancelled.batch.shard, batchId)).catch(() => undefined);
      await events.emit(actor, 'batch.cancelled', batchId);
    }
    return ok(batchResource.of(cancelled.batch, clock.now()));
  },
});

/** Many requests at once (docs/spec.md#batches). */
export const batchesEndpoints = { createBatch, listBatches, getBatch, cancelBatch, getBatchResults };
