import Joi from 'joi';

import { TIERS } from '../../shared/contracts/chat-request.ts';
import { listQuerySchema, parseListQuery, toListPage } from '../../shared/contracts/list-page.ts';
import type { ListQuery } from '../../shared/contracts/list-page.ts';
import { checkAgainst } from '../../shared/contracts/parse.ts';
import { toCredits } from '../../shared/domain/pricing.ts';
import { ERRORS } from '../../shared/errors/codes.ts';
import { LOGGED_STATUSES } from '../../shared/mongo/requests/request-log.ts';
import type { LogFilter, RequestLog, RequestLogRow } from '../../shared/mongo/requests/request-log.ts';
import { defineEndpoint, exampleList, json, ok } from '../contract/endpoint.ts';
import type { QueryRule } from '../contract/endpoint.ts';
import {
  field,
  givenId,
  id,
  integer,
  kind,
  named,
  nullable,
  number,
  ONCE,
  oneOf,
  pageSchema,
  resource,
  text,
  time,
  toSeconds,
} from '../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../contract/path-parameters.ts';

export interface ChatRequestListDeps {
  requestLog: RequestLog;
}

export const CODES = Object.keys(ERRORS);
export const momentOrNull = (description: string) => nullable(number(`${description}, in Unix seconds with decimals.`));

export const momentOf = (ms: number | undefined) => (ms === undefined ? null : ms / 1000);

export const creditsOf = ({ costMicro }: RequestLogRow) => (costMicro === undefined ? null : toCredits(costMicro));

/** Without what only operators read: providers, their cost and the reason of a failure. */
const summaryResource = resource<[row: RequestLogRow]>('ChatRequestSummary', {
  id: field(id('req'), PATH_PARAMETERS.requestId.example, (row) => row._id),
  object: kind('chat.request.summary'),
  created_at: field(time('Time of acceptance or refusal'), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  status: field(oneOf(LOGGED_STATUSES), 'completed', (row) => row.status),
  endpoint: field(
    text('`chat`, `chat.stream` or `batch`; of a refused request its method and path.'),
    'chat.stream',
    (row) => row.endpoint,
  ),
  key_id: field(id('key'), PATH_PARAMETERS.keyId.example, (row) => row.keyId),
  mode: field(oneOf(['live', 'test']), 'live', (row) => row.mode ?? 'live'),
  model: field(nullable(oneOf(TIERS)), 'mobius', (row) => row.tier),
  error_code: field(nullable(oneOf(CODES)), null, (row) => row.code),
  finish_reason: field(nullable(text()), 'stop', (row) => row.finishReason),
  prompt_tokens: field(nullable(integer()), 12, (row) => row.promptTokens),
  completion_tokens: field(nullable(integer()), 48, (row) => row.completionTokens),
  credits: field(nullable(number('Charged.')), 60, creditsOf),
  accepted_at: field(momentOrNull('Time of acceptance or refusal'), 1_795_255_200.118, (row) =>
    momentOf(row.createdAt),
  ),
  started_at: field(momentOrNull('When a worker began'), 1_795_255_200.125, (row) => momentOf(row.startedAt)),
  first_token_at: field(momentOrNull('When the first text was released'), 1_795_255_200.48, (row) =>
    momentOf(row.firstTokenAt),
  ),
  finished_at: field(momentOrNull('Time of the end'), 1_795_255_201.002, (row) => momentOf(row.finishedAt)),
});

const seconds = Joi.string()
  .pattern(/^\d{1,11}$/)
  .messages({ ...ONCE, 'string.pattern.base': '{{#label}} must be Unix seconds' });

export const LOG_PARAMETERS = {
  key_id: givenId('key', 'an API key').messages(ONCE).description('Only of this key.'),
  error_code: Joi.string()
    .valid(...CODES)
    .description('Only with this code.'),
  start_time: seconds.description('Only then or later, in Unix seconds.'),
  end_time: seconds.description('Only before then, in Unix seconds.'),
};
export const STATUS = Joi.string()
  .valid(...LOGGED_STATUSES)
  .description('Only with this status.');
export const TIER = Joi.string()
  .valid(...TIERS)
  .description('Only of this tier.');

const LOG_FIELDS = {
  tenant_id: 'tenantId',
  key_id: 'keyId',
  error_code: 'code',
  status: 'status',
  tier: 'tier',
  model: 'tier',
  provider: 'provider',
  start_time: 'from',
  end_time: 'before',
} as const satisfies Record<string, keyof LogFilter>;
type LogParameter = keyof typeof LOG_FIELDS;

/** Reads only the parameters in `own`: a caller that may not see a field must not search by it. */
export function logQueryOf(
  own: Partial<Record<LogParameter, Joi.Schema>>,
): QueryRule<{ list: ListQuery; filter: LogFilter }> {
  const schema = Joi.object<Partial<Record<LogParameter, string>>>(own).unknown();
  // The type of `own` allows no other names.
  const names = Object.keys(own) as LogParameter[];
  return {
    schemas: [schema, listQuerySchema],
    read(query) {
      const list = parseListQuery(query);
      checkAgainst(schema, query);
      const given = names.filter((name) => query[name] !== undefined);
      const valueOf = (name: LogParameter) => (name.endsWith('_time') ? Number(query[name]) * 1000 : query[name]);
      return { list, filter: Object.fromEntries(given.map((name) => [LOG_FIELDS[name], valueOf(name)])) };
    },
  };
}

/** The ends of requests (docs/spec.md#look-up-and-cancelling). */
export const listChatRequests = defineEndpoint({
  method: 'GET',
  path: '/requests',
  scopes: ['chat', 'chat.stream'],
  counts: 'lookup',
  tag: 'Chat',
  summary: 'List chat requests',
  description:
    'Requests are listed a second after their end, without any text, and kept for a time that the operator sets. Of refused ones, the first few of each key, code and minute are listed.',
  query: logQueryOf({ status: STATUS, model: TIER, ...LOG_PARAMETERS }),
  answers: { 200: json('A page of requests.', named('ChatRequestList', pageSchema(summaryResource.schema))) },
  examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(summaryResource.example) } },
  async handle({ principal, query: { list, filter } }, { requestLog }: ChatRequestListDeps) {
    const { tenantId, mode } = principal;
    const rows = await requestLog.list({ ...filter, space: { tenantId, mode } }, list);
    return ok(toListPage(rows, list.limit, summaryResource.of));
  },
});
