import { TIERS } from '../../../shared/contracts/chat-request.ts';
import { listQuerySchema } from '../../../shared/contracts/list-page.ts';
import { exampleList } from '../../openapi/example-list.ts';
import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import {
  boolean,
  constant,
  id,
  integer,
  listOf,
  nullable,
  number,
  object,
  oneOf,
  pageSchema,
  ref,
  text,
  time,
} from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';
import { usageQuerySchema, usageRequestsQuerySchema } from './schema.ts';

const tokens = {
  prompt_tokens: integer(undefined, 0),
  completion_tokens: integer(undefined, 0),
  total_tokens: integer(undefined, 0),
  credits: number('What was charged.'),
};
const apart = nullable(text('Null where the sums are not told apart by it.'));

export const usageSchemas: Readonly<Record<string, JsonSchema>> = {
  UsageResult: object({
    object: constant('usage.result'),
    requests: integer(undefined, 0),
    ...tokens,
    estimated_requests: integer('Requests whose tokens the provider did not count.', 0),
    key_id: apart,
    model: apart,
    entity_id: apart,
    mode: apart,
    endpoint: apart,
  }),
  UsagePage: object({
    object: constant('page'),
    data: listOf(
      object({
        object: constant('bucket'),
        start_time: time('The first moment of it'),
        end_time: time('The first moment behind it'),
        results: listOf(ref('UsageResult'), 'Empty where nothing was used.'),
      }),
    ),
    has_more: boolean(),
    next_page: nullable(text('`page` of the next call.')),
  }),
  UsageRequest: object({
    id: id('req'),
    object: constant('usage.request'),
    created_at: time('When it was accepted'),
    settled_at: time('When it was booked'),
    key_id: nullable(id('key')),
    mode: nullable(oneOf(['live', 'test'])),
    endpoint: nullable(text()),
    model: nullable(oneOf(TIERS)),
    entity_id: nullable(text()),
    ...tokens,
    estimated: boolean('The tokens were estimated, as the provider did not count them.'),
    finish_reason: nullable(text()),
  }),
  UsageRequestList: pageSchema(ref('UsageRequest')),
};

const SUMS = { prompt_tokens: 1_204, completion_tokens: 3_377, total_tokens: 4_581, credits: 4_581 };
const REQUEST = {
  id: PATH_PARAMETERS.requestId.example,
  object: 'usage.request',
  created_at: 1_795_255_200,
  settled_at: 1_795_255_201,
  key_id: PATH_PARAMETERS.keyId.example,
  mode: 'live',
  endpoint: 'chat',
  model: 'mobius',
  entity_id: null,
  ...{ prompt_tokens: 14, completion_tokens: 9, total_tokens: 23, credits: 23 },
  estimated: false,
  finish_reason: 'stop',
};

/** What the document tells of `/usage`. */
export const usageOperations: OperationsOf<'getUsage' | 'listUsageRequests'> = {
  getUsage: {
    tag: 'Usage',
    summary: 'Sum usage up by time',
    description:
      'By day since the beginning of the month, unless the parameters say otherwise. Parameters that are not known are refused.',
    query: [usageQuerySchema],
    answers: { 200: json('A page of buckets, oldest first.', ref('UsagePage')) },
    examples: {
      this_month: {
        summary: 'This month by day',
        status: 200,
        answer: {
          object: 'page',
          data: [{ object: 'bucket', start_time: 1_795_219_200, end_time: 1_795_305_600, results: [] }],
          has_more: false,
          next_page: null,
        },
      },
      by_model: {
        summary: 'By the hour, with tiers told apart',
        query: { bucket_width: '1h', group_by: ['model', 'mode'], limit: 24 },
        status: 200,
        answer: {
          object: 'page',
          data: [
            {
              object: 'bucket',
              start_time: 1_795_219_200,
              end_time: 1_795_222_800,
              results: [
                {
                  object: 'usage.result',
                  requests: 212,
                  ...SUMS,
                  estimated_requests: 0,
                  ...{ key_id: null, model: 'mobius', entity_id: null, mode: 'live', endpoint: null },
                },
              ],
            },
          ],
          has_more: true,
          next_page: 'MWg6MTc5NTMwNTYwMDAwMA',
        },
      },
    },
  },
  listUsageRequests: {
    tag: 'Usage',
    summary: 'List single requests as they were booked',
    query: [usageRequestsQuerySchema, listQuerySchema],
    answers: { 200: json('A page of requests.', ref('UsageRequestList')) },
    examples: {
      live: {
        summary: 'Of live keys',
        query: { mode: ['live'], limit: 20 },
        status: 200,
        answer: exampleList(REQUEST),
      },
    },
  },
};
