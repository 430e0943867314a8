import Joi from 'joi';

import { TIERS } from '../../../shared/contracts/chat-request.ts';
import { toListPage } from '../../../shared/contracts/list-page.ts';
import { toCredits } from '../../../shared/domain/pricing.ts';
import { LOGGED_STATUSES } from '../../../shared/mongo/requests/request-log.ts';
import type { RefusalCountRow, RequestLog, RequestLogRow } from '../../../shared/mongo/requests/request-log.ts';
import {
  CODES,
  LOG_PARAMETERS,
  STATUS,
  TIER,
  logQueryOf,
  momentOf,
  momentOrNull,
} from '../../chat/chat-request-list.ts';
import { defineAdminEndpoint, exampleList, json, ok } from '../../contract/endpoint.ts';
import {
  ONCE,
  constant,
  givenId,
  id,
  integer,
  listOf,
  named,
  nullable,
  number,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS, found } from '../../contract/path-parameters.ts';

const fields = {
  id: id('req'),
  object: constant('request'),
  created_at: time('Time of acceptance or refusal'),
  tenant_id: id('ten'),
  key_id: id('key'),
  mode: oneOf(['live', 'test']),
  endpoint: text('`chat`, `chat.stream` or `batch`; of a refused request its method and path.'),
  status: oneOf(LOGGED_STATUSES),
  error_code: nullable(oneOf(CODES)),
  reason: nullable(
    text(
      'For operators: provider, model, outcome and number of the last provider call that failed, or why it ended without a run.',
    ),
  ),
  tier: nullable(oneOf(TIERS)),
  provider: nullable(text('The provider that was called last.')),
  model: nullable(text("The provider's model.")),
  finish_reason: nullable(text()),
  prompt_tokens: nullable(integer()),
  completion_tokens: nullable(integer()),
  estimated: nullable({ type: 'boolean', description: 'Tokens were counted here, not by the provider.' }),
  credits: nullable(number('Charged.')),
  cost: nullable(number('What the provider calls cost; null: unknown.')),
  currency: nullable(text('Of `cost`.')),
  timeline: object({
    accepted_at: momentOrNull('Time of acceptance'),
    started_at: momentOrNull('When a worker began'),
    moderated_at: momentOrNull('When moderation had passed the messages'),
    verdict: nullable(text('Of moderation.')),
    first_token_at: momentOrNull('When the first text was released'),
    finished_at: momentOrNull('Time of the end'),
    attempts: listOf(
      object({
        provider: text(),
        model: text(),
        started_at: momentOrNull('Start of the call'),
        ended_at: momentOrNull('End of the call'),
        outcome: text('`ok`, why it failed, or `breaker_open`: it was not made.'),
      }),
    ),
  }),
};

function toResource(row: RequestLogRow) {
  const { attempts = [], spend } = row;
  return {
    id: row._id,
    object: 'request',
    created_at: toSeconds(row.createdAt),
    tenant_id: row.tenantId,
    key_id: row.keyId,
    mode: row.mode ?? 'live',
    endpoint: row.endpoint,
    status: row.status,
    error_code: row.code ?? null,
    reason: row.reason ?? null,
    tier: row.tier ?? null,
    provider: row.provider ?? null,
    model: row.model ?? null,
    finish_reason: row.finishReason ?? null,
    prompt_tokens: row.promptTokens ?? null,
    completion_tokens: row.completionTokens ?? null,
    estimated: row.estimated ?? null,
    credits: row.costMicro === undefined ? null : toCredits(row.costMicro),
    cost: spend === undefined ? null : spend.nano / 1e9,
    currency: spend?.currency ?? null,
    timeline: {
      accepted_at: row.status === 'refused' ? null : momentOf(row.createdAt),
      started_at: momentOf(row.startedAt),
      moderated_at: momentOf(row.moderatedAt),
      verdict: row.verdict ?? null,
      first_token_at: momentOf(row.firstTokenAt),
      finished_at: momentOf(row.finishedAt),
      attempts: attempts.map(({ provider, model, startedAt, endedAt, outcome }) => ({
        provider,
        model,
        started_at: momentOf(startedAt),
        ended_at: momentOf(endedAt),
        outcome,
      })),
    },
  } satisfies FieldsOf<typeof fields>;
}

const refusalParameters = {
  tenant_id: givenId('ten', 'a tenant').messages(ONCE).description('Only of this tenant.'),
  ...LOG_PARAMETERS,
};

const requestsQuery = logQueryOf({
  ...refusalParameters,
  status: STATUS,
  tier: TIER,
  provider: Joi.string().max(63).description('Only those whose last call was of this provider.'),
});

const EXAMPLE = toResource({
  _id: PATH_PARAMETERS.requestId.example,
  tenantId: PATH_PARAMETERS.tenantId.example,
  keyId: PATH_PARAMETERS.keyId.example,
  endpoint: 'chat',
  tier: 'mobius',
  status: 'failed',
  createdAt: 1_795_255_200_118,
  startedAt: 1_795_255_200_125,
  moderatedAt: 1_795_255_200_127,
  verdict: 'passed',
  finishedAt: 1_795_255_201_002,
  code: 'model_unavailable',
  reason: 'model_unavailable: openai gpt-5-mini status_500, attempt 1',
  provider: 'openai',
  model: 'gpt-5-mini',
  finishReason: 'error',
  promptTokens: 0,
  completionTokens: 0,
  costMicro: 0,
  attempts: [
    {
      provider: 'openai',
      model: 'gpt-5-mini',
      startedAt: 1_795_255_200_130,
      endedAt: 1_795_255_201_001,
      outcome: 'status_500',
    },
  ],
});

export interface RequestLogDeps {
  requestLog: RequestLog;
}

const requestSchema = named('AdminRequest', object(fields));

const listRequests = defineAdminEndpoint({
  method: 'GET',
  path: '/requests',
  tag: 'Requests',
  summary: 'List ended and refused requests',
  description:
    'Requests are listed a second after their end and kept for `REQUEST_LOG_DAYS`; never their text. Of refused ones, the first few of each key, code and minute are listed; `GET /refusals` has the counts.',
  query: requestsQuery,
  answers: { 200: json('A page of requests.', named('AdminRequestList', pageSchema(requestSchema))) },
  examples: { failed: { query: { status: 'failed' }, status: 200, answer: exampleList(EXAMPLE) } },
  async handle({ query: { list, filter } }, { requestLog }: RequestLogDeps) {
    return ok(toListPage(await requestLog.list(filter, list), list.limit, toResource));
  },
});

const getRequest = defineAdminEndpoint({
  method: 'GET',
  path: '/requests/:requestId',
  tag: 'Requests',
  summary: 'Retrieve an ended or refused request',
  description: 'By the `X-Request-Id` of its answer.',
  answers: { 200: json('The request.', requestSchema) },
  examples: { failed: { status: 200, answer: EXAMPLE } },
  async handle({ params }, { requestLog }: RequestLogDeps) {
    return ok(toResource(found(await requestLog.find(params.requestId), 'requestId')));
  },
});

const refusalFields = {
  id: text(),
  object: constant('refusal.count'),
  created_at: time('The beginning of the minute'),
  tenant_id: id('ten'),
  key_id: id('key'),
  mode: oneOf(['live', 'test']),
  error_code: oneOf(CODES),
  count: integer('Refused requests in this minute.', 1),
};

const toRefusal = (row: RefusalCountRow) =>
  ({
    id: row._id,
    object: 'refusal.count',
    created_at: toSeconds(row.createdAt),
    tenant_id: row.tenantId,
    key_id: row.keyId,
    mode: row.mode ?? 'live',
    error_code: row.code,
    count: row.count,
  }) satisfies FieldsOf<typeof refusalFields>;

const REFUSAL_EXAMPLE = toRefusal({
  _id: `${PATH_PARAMETERS.keyId.example}:rpm_exceeded:1795255200000`,
  tenantId: PATH_PARAMETERS.tenantId.example,
  keyId: PATH_PARAMETERS.keyId.example,
  code: 'rpm_exceeded',
  createdAt: 1_795_255_200_000,
  count: 4_211,
});

const listRefusals = defineAdminEndpoint({
  method: 'GET',
  path: '/refusals',
  tag: 'Requests',
  summary: 'List refusals by key and minute',
  description:
    'Requests of known keys that were answered 400, 401, 402, 403 or 429 before they were accepted, counted by key, code and minute.',
  query: logQueryOf(refusalParameters),
  answers: {
    200: json('A page of counts.', named('RefusalList', pageSchema(named('Refusal', object(refusalFields))))),
  },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(REFUSAL_EXAMPLE) } },
  async handle({ query: { list, filter } }, { requestLog }: RequestLogDeps) {
    return ok(toListPage(await requestLog.listRefusals(filter, list), list.limit, toRefusal));
  },
});

/** Ends and refusals of requests (docs/spec.md#finding-a-request). */
export const requestLogEndpoints = { listRequests, getRequest, listRefusals };
