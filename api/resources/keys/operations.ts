import { listQuerySchema } from '../../../shared/contracts/list-page.ts';
import { SCOPES } from '../../../shared/domain/keys/api-key.ts';
import { exampleList } from '../../openapi/example-list.ts';
import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import {
  constant,
  deletedSchema,
  id,
  integer,
  listOf,
  nullable,
  object,
  oneOf,
  pageSchema,
  ref,
  text,
  time,
} from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';
import { newKeySchema } from '../../admin/keys/schema.ts';
import { keyChangesSchema, rotationSchema } from './schema.ts';

const fields = {
  id: id('key'),
  object: constant('api_key'),
  created_at: time(),
  name: text(),
  mode: oneOf(['live', 'test'], 'A test key is not billed.'),
  scopes: listOf(oneOf(SCOPES)),
  status: oneOf(['active', 'revoked', 'expired']),
  limits: object({
    rpm: integer('Requests per minute.', 1),
    tpm: integer('Tokens per minute.', 1),
    daily_requests: integer('Requests in any 24 hours; 0 means unlimited.', 0),
  }),
  expires_at: nullable(time('When it stops working')),
  last_used_at: nullable(time('When it was last used, give or take a minute')),
  redacted_value: text('Its beginning and end.'),
  previous_value_expires_at: nullable(time('Until when the value before the last rotation is accepted')),
};
const value = text('The key itself, shown this once.');

export const keySchemas: Readonly<Record<string, JsonSchema>> = {
  ApiKey: object(fields),
  ApiKeyWithValue: object({ ...fields, value }, ['value']),
  ApiKeyList: pageSchema(ref('ApiKey')),
  DeletedApiKey: deletedSchema('api_key', id('key')),
};

const KEY = {
  id: PATH_PARAMETERS.keyId.example,
  object: 'api_key',
  created_at: 1_795_255_200,
  name: 'Homework helper',
  mode: 'live',
  scopes: ['chat', 'chat.stream'],
  status: 'active',
  limits: { rpm: 30, tpm: 100_000, daily_requests: 0 },
  expires_at: 1_797_847_200,
  last_used_at: null,
  redacted_value: 'svc_sk_live_…7fQ2',
  previous_value_expires_at: null,
};
const WITH_VALUE = { ...KEY, value: 'svc_sk_live_AbCdEfGhIjKlMnOpQrStUvWxYz7fQ2' };

/** What the document tells of `/keys`. */
export const keysOperations: OperationsOf<
  'createKey' | 'listKeys' | 'getKey' | 'updateKey' | 'revokeKey' | 'rotateKey'
> = {
  createKey: {
    tag: 'Keys',
    summary: 'Create an API key',
    description:
      'A key never grants more than the one that makes it has: mode, scopes, limits and expiry must be within its own (403). At most 100 active keys a tenant (409). A replayed answer leaves `value` out.',
    headers: ['Idempotency-Key'],
    body: { name: 'NewApiKey', schema: newKeySchema },
    answers: { 201: json('The key, with its value.', ref('ApiKeyWithValue'), ['Idempotent-Replayed']) },
    examples: {
      plain: {
        summary: 'With all scopes',
        body: { name: 'Everything' },
        status: 201,
        answer: { ...WITH_VALUE, name: 'Everything', scopes: ['*'], expires_at: null },
      },
      limited: {
        summary: 'For chat alone, for 30 days',
        body: { name: 'Homework helper', scopes: ['chat', 'chat.stream'], expires_in_seconds: 2_592_000, rpm: 30 },
        status: 201,
        answer: WITH_VALUE,
      },
    },
  },
  listKeys: {
    tag: 'Keys',
    summary: 'List API keys',
    query: [listQuerySchema],
    answers: { 200: json('A page of keys.', ref('ApiKeyList')) },
    examples: {
      first: { summary: 'The newest ones', query: { limit: 10 }, status: 200, answer: exampleList(KEY) },
    },
  },
  getKey: {
    tag: 'Keys',
    summary: 'Look an API key up',
    answers: { 200: json('The key.', ref('ApiKey')) },
    examples: { one: { status: 200, answer: KEY } },
  },
  updateKey: {
    tag: 'Keys',
    summary: 'Change an API key',
    description:
      "`null` takes a setting away: no expiry, the tenant's limits. A key keeps its mode; what widens it must be within the calling key's own.",
    body: { name: 'ApiKeyChanges', schema: keyChangesSchema },
    answers: { 200: json('The key after it.', ref('ApiKey')) },
    errors: ['conflict'],
    examples: {
      rename: {
        summary: 'Another name and limit',
        body: { name: 'Homework helper', rpm: 30 },
        status: 200,
        answer: KEY,
      },
    },
  },
  revokeKey: {
    tag: 'Keys',
    summary: 'Revoke an API key',
    description: 'It stops working everywhere within a second. A revoked key stays in the list.',
    answers: { 200: json('It is revoked.', ref('DeletedApiKey')) },
    examples: { one: { status: 200, answer: { id: KEY.id, object: 'api_key', deleted: true } } },
  },
  rotateKey: {
    tag: 'Keys',
    summary: 'Give an API key another value',
    description: 'Needs no body. The earlier value works on for `grace_seconds`.',
    headers: ['Idempotency-Key'],
    body: { name: 'ApiKeyRotation', schema: rotationSchema },
    answers: { 200: json('The key, with its value.', ref('ApiKeyWithValue'), ['Idempotent-Replayed']) },
    examples: {
      at_once: { summary: 'The earlier value stops working', body: {}, status: 200, answer: WITH_VALUE },
      grace: {
        summary: 'The earlier value works for an hour',
        body: { grace_seconds: 3_600 },
        status: 200,
        answer: { ...WITH_VALUE, previous_value_expires_at: 1_795_258_800 },
      },
    },
  },
};
