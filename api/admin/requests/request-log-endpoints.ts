import Joi from 'joi';

import { TIERS } from '../../../shared/contracts/chat-request.ts';
import { toListPage } from '../../../shared/contracts/list-page.ts';
import { LOGGED_STATUSES } from '../../../shared/mongo/requests/request-log.ts';
import type { RefusalCountRow, RequestLog, RequestLogRow } from '../../../shared/mongo/requests/request-log.ts';
import {
  CODES,
  LOG_PARAMETERS,
  creditsOf,
  STATUS,
  TIER,
  logQueryOf,
  momentOf,
  momentOrNull,
} from '../../chat/chat-request-list.ts';
import { defineAdminEndpoint, exampleList, json, ok } from '../../contract/endpoint.ts';
import {
  boolean,
  field,
  givenId,
  id,
  integer,
  kind,
  listOf,
  nullable,
  number,
  object,
  ONCE,
  oneOf,
  resource,
  text,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import { PATH_PARAMETERS, found } from '../../contract/path-parameters.ts';

const requestResource = resource<[row: RequestLogRow]>('AdminRequest', {
  id: field(id('req'), PATH_PARAMETERS.requestId.example, (row) => row._id),
  object: kind('request'),
  created_at: field(time('Time of acceptance or refusal'), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  tenant_id: field(id('ten'), PATH_PARAMETERS.tenantId.example, (row) => row.tenantId),
  key_id: field(id('key'), PATH_PARAMETERS.keyId.example, (row) => row.keyId),
  mode: field(oneOf(['live', 'test']), 'live', (row) => row.mode ?? 'live'),
  endpoint: field(
    text('`chat`, `chat.stream` or `batch`; of a refused request its method and path.'),
    'chat',
    (row) => row.endpoint,
  ),
  status: field(oneOf(LOGGED_STATUSES), 'failed', (row) => row.status),
  error_code: field(nullable(oneOf(CODES)), 'model_unavailable', (row) => row.code),
  reason: field(
    nullable(
      text(
        'For operators: provider, model, outcome and number of the last provider call that failed, or why it ended without a run.',
      ),
    ),
    'model_unavailable: openai gpt-5-mini status_500, attempt 1',
    (row) => row.reason,
  ),
  tier: field(nullable(oneOf(TIERS)), 'mobius', (row) => row.tier),
  provider: field(nullable(text('The provider that was called last.')), 'openai', (row) => row.provider),
  model: field(nullable(text("The provider's model.")), 'gpt-5-mini', (row) => row.model),
  finish_reason: field(nullable(text()), 'error', (row) => row.finishReason),
  prompt_tokens: field(nullable(integer()), 0, (row) => row.promptTokens),
  completion_tokens: field(nullable(integer()), 0, (row) => row.completionTokens),
  estimated: field(nullable(boolean('Tokens were counted here, not by the provider.')), null, (row) => row.estimated),
  credits: field(nullable(number('Charged.')), 0, creditsOf),
  cost: field(
    nullable(number('What the provider calls cost; null: unknown.')),
    null,
    (row) => row.spend && row.spend.nano / 1e9,
  ),
  currency: field(nullable(text('Of `cost`.')), null, (row) => row.spend?.currency),
  timeline: field(
    object({
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
    {
      accepted_at: 1_795_255_200.118,
      started_at: 1_795_255_200.125,
      moderated_at: 1_795_255_200.127,
      verdict: 'passed',
      first_token_at: null,
      finished_at: 1_795_255_201.002,
      attempts: [
        {
          provider: 'openai',
          model: 'gpt-5-mini',
          started_at: 1_795_255_200.13,
          ended_at: 1_795_255_201.001,
          outcome: 'status_500',
        },
      ],
    },
    (row) => ({
      accepted_at: row.status === 'refused' ? null : momentOf(row.createdAt),
      started_at: momentOf(row.startedAt),
      moderated_at: momentOf(row.moderatedAt),
      verdict: row.verdict ?? null,
      first_token_at: momentOf(row.firstTokenAt),
      finished_at: momentOf(row.finishedAt),
      attempts: (row.attempts ?? []).map(({ provider, model, startedAt, endedAt, outcome }) => ({
        provider,
        model,
        started_at: momentOf(startedAt),
        ended_at: momentOf(endedAt),
        outcome,
      })),
    }),
  ),
});

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

export interface RequestLogDeps {
  requestLog: RequestLog;
}

const listRequests = defineAdminEndpoint({
  method: 'GET',
  path: '/requests',
  tag: 'Requests',
  summary: 'List ended and refused requests',
  description:
    'Requests are listed a second after their end and kept for `REQUEST_LOG_DAYS`; never their text. Of refused ones, the first few of each key, code and minute are listed; `GET /refusals` has the counts.',
  query: requestsQuery,
  answers: { 200: json('A page of requests.', requestResource.listSchema) },
  examples: { failed: { query: { status: 'failed' }, status: 200, answer: exampleList(requestResource.example) } },
  async handle({ query: { list, filter } }, { requestLog }: RequestLogDeps) {
    return ok(toListPage(await requestLog.list(filter, list), list.limit, requestResource.of));
  },
});

const getRequest = defineAdminEndpoint({
  method: 'GET',
  path: '/requests/:requestId',
  tag: 'Requests',
  summary: 'Retrieve an ended or refused request',
  description: 'By the `X-Request-Id` of its answer.',
  answers: { 200: json('The request.', requestResource.schema) },
  examples: { failed: { status: 200, answer: requestResource.example } },
  async handle({ params }, { requestLog }: RequestLogDeps) {
    return ok(requestResource.of(found(await requestLog.find(params.requestId), 'requestId')));
  },
});

const refusalResource = resource<[row: RefusalCountRow]>('Refusal', {
  id: field(text(), `${PATH_PARAMETERS.keyId.example}:rpm_exceeded:1795255200000`, (row) => row._id),
  object: kind('refusal.count'),
  created_at: field(time('The beginning of the minute'), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  tenant_id: field(id('ten'), PATH_PARAMETERS.tenantId.example, (row) => row.tenantId),
  key_id: field(id('key'), PATH_PARAMETERS.keyId.example, (row) => row.keyId),
  mode: field(oneOf(['live', 'test']), 'live', (row) => row.mode ?? 'live'),
  error_code: field(oneOf(CODES), 'rpm_exceeded', (row) => row.code),
  count: field(integer('Refused requests in this minute.', 1), 4_211, (row) => row.count),
});

const listRefusals = defineAdminEndpoint({
  method: 'GET',
  path: '/refusals',
  tag: 'Requests',
  summary: 'List refusals by key and minute',
  description:
    'Requests of known keys that were answered 400, 401, 402, 403 or 429 before they were accepted, counted by key, code and minute.',
  query: logQueryOf(refusalParameters),
  answers: { 200: json('A page of counts.', refusalResource.listSchema) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(refusalResource.example) } },
  async handle({ query: { list, filter } }, { requestLog }: RequestLogDeps) {
    return ok(toListPage(await requestLog.listRefusals(filter, list), list.limit, refusalResource.of));
  },
});

/** Ends and refusals of requests (docs/spec.md#finding-a-request). */
export const requestLogEndpoints = { listRequests, getRequest, listRefusals };
