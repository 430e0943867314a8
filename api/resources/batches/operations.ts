import Joi from 'joi';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import type { BatchStatus, BatchWait } from '../../../shared/contracts/batches.ts';
import { chatBodySchema } from '../../../shared/contracts/chat-request.ts';
import { listQuerySchema } from '../../../shared/contracts/list-page.ts';
import { batchFieldsSchema } from './read-batch.ts';
import { batchItemSchema } from './to-line.ts';
import { exampleList } from '../../openapi/example-list.ts';
import { fromJoi } from '../../openapi/from-joi.ts';
import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import {
  constant,
  id,
  integer,
  nullable,
  object,
  oneOf,
  oneOfType,
  pageSchema,
  ref,
  text,
  time,
} from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';

/** A request whose body is right: what is wrong with one is told in its own result. */
const itemSchema = batchItemSchema.keys({ body: chatBodySchema });
const batchSchema = batchFieldsSchema.keys({
  requests: Joi.array().items(itemSchema).min(1).max(BATCH_LIMITS.linesMax).required(),
});

export const batchSchemas: Readonly<Record<string, JsonSchema>> = {
  BatchItem: fromJoi(itemSchema),
  BatchStatus: oneOfType<BatchStatus>({
    validating: true,
    in_progress: true,
    completed: true,
    failed: true,
    expired: true,
    cancelling: true,
    cancelled: true,
  }),
  Batch: object({
    id: id('batch'),
    object: constant('batch'),
    created_at: time(),
    status: ref('BatchStatus'),
    request_counts: object({
      total: integer(undefined, 0),
      completed: integer(undefined, 0),
      failed: integer(undefined, 0),
    }),
    waiting_for: nullable(
      oneOfType<BatchWait>(
        {
          tpm: true,
          credits: true,
          budget: true,
          daily_requests: true,
          test_tokens: true,
          account: true,
          queue: true,
          provider: true,
        },
        'What keeps its next request from being sent.',
      ),
    ),
    metadata: { type: ['object', 'null'], description: "The batch's own `metadata`." },
    key_id: id('key'),
    mode: oneOf(['live', 'test']),
    started_at: nullable(time('When its first request was sent')),
    expires_at: nullable(time('What has not been sent by then is not sent any more')),
    cancelled_at: nullable(time('When it was to be cancelled')),
    completed_at: nullable(time('When its last request had ended')),
  }),
  BatchList: pageSchema(ref('Batch')),
  BatchResult: object(
    {
      custom_id: nullable(text('Null where the request had none that could be read.')),
      request_id: id('req'),
      response: ref('ChatCompletion'),
      error: ref('ErrorObject'),
    },
    ['response', 'error'],
  ),
};

const ITEMS = [
  { custom_id: 'greeting', body: { messages: [{ role: 'user', content: 'Say hello.' }] } },
  { custom_id: 'sum', body: { messages: [{ role: 'user', content: 'What is 2 + 3?' }], max_tokens: 50 } },
];
const LINES = ITEMS.map((item) => `${JSON.stringify(item)}\n`).join('');
const BATCH = {
  id: PATH_PARAMETERS.batchId.example,
  object: 'batch',
  created_at: 1_795_255_200,
  status: 'in_progress',
  request_counts: { total: 2, completed: 1, failed: 0 },
  waiting_for: null,
  metadata: { job: 'nightly' },
  key_id: PATH_PARAMETERS.keyId.example,
  mode: 'live',
  started_at: 1_795_255_201,
  expires_at: 1_795_341_600,
  cancelled_at: null,
  completed_at: null,
};
const ACCEPTED = { ...BATCH, request_counts: { total: 2, completed: 0, failed: 0 }, started_at: null };
const RESULT = {
  custom_id: 'sum',
  request_id: PATH_PARAMETERS.requestId.example,
  response: {
    id: PATH_PARAMETERS.requestId.example,
    object: 'chat.completion',
    created: 1_795_255_202,
    model: 'mobius',
    choices: [{ index: 0, message: { role: 'assistant', content: '5' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 13, completion_tokens: 1, total_tokens: 14 },
  },
};

/** What the document tells of `/batches`. */
export const batchesOperations: OperationsOf<
  'createBatch' | 'listBatches' | 'getBatch' | 'cancelBatch' | 'getBatchResults'
> = {
  createBatch: {
    tag: 'Batches',
    summary: 'Send many requests at once',
    description:
      'As JSON, or one request a line as NDJSON; 50 MiB at most. Each is a request of `POST /chat` with its own id and charge. One that is wrong has an error for its result; only what concerns the batch as a whole refuses it.',
    headers: ['Idempotency-Key'],
    body: { name: 'NewBatch', schema: batchSchema, others: { 'application/x-ndjson': ref('BatchItem') } },
    answers: { 202: json('It will run; look it up at `Location`.', ref('Batch'), ['Location', 'Idempotent-Replayed']) },
    examples: {
      inline: {
        summary: 'As JSON',
        body: { requests: ITEMS, metadata: BATCH.metadata },
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
  },
  listBatches: {
    tag: 'Batches',
    summary: 'List batches',
    query: [listQuerySchema],
    answers: { 200: json('A page of batches.', ref('BatchList')) },
    examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(BATCH) } },
  },
  getBatch: {
    tag: 'Batches',
    summary: 'Look a batch up',
    answers: { 200: json('The batch.', ref('Batch')) },
    examples: { one: { status: 200, answer: BATCH } },
  },
  cancelBatch: {
    tag: 'Batches',
    summary: 'Cancel a batch',
    description: 'Requests that run come to their end; the others are not sent. A batch that has ended stays as it is.',
    headers: ['Idempotency-Key'],
    answers: { 200: json('The batch after it.', ref('Batch'), ['Idempotent-Replayed']) },
    examples: {
      running: {
        status: 200,
        answer: { ...BATCH, status: 'cancelling', cancelled_at: 1_795_255_260 },
      },
    },
  },
  getBatchResults: {
    tag: 'Batches',
    summary: 'Read the results of a batch',
    description:
      'One a line, in the order of the requests, with `response` or `error`. What has ended can be read while the rest runs. Kept for 30 days.',
    answers: { 200: { description: 'Lines of JSON.', content: { 'application/x-ndjson': ref('BatchResult') } } },
    examples: { ended: { status: 200, answer: `${JSON.stringify(RESULT)}\n` } },
  },
};
