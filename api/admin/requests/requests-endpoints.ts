import Joi from 'joi';

import { OUTAGE_CODES } from '../../../shared/domain/request-times.ts';
import type { OutageCode } from '../../../shared/domain/request-times.ts';
import { toRetrySeconds, ServiceError } from '../../../shared/errors/service-error.ts';
import { REPLAY_KINDS } from '../../../shared/mongo/requests/failed-intents.ts';
import type { FailedFilter, ReplayKind } from '../../../shared/mongo/requests/failed-intents.ts';
import { defineAdminEndpoint, ok, json, jsonBody } from '../../contract/endpoint.ts';
import {
  boolean,
  constant,
  countSchema,
  field,
  givenId,
  id,
  integer,
  listOf,
  named,
  nullable,
  object,
  oneOf,
  resource,
  text,
  time,
  toSecondsOrNull,
  unixSecondsSchema,
} from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';
import type { FailedPosition, ReplayedOne, ReplayFailed, ReplayReport } from './replay-failed.ts';
import { SKIP_REASONS } from './replay-rules.ts';

const LIMIT_MAX = 500;
const LIMIT = 100;
const IDS_MAX = 100;

interface NewReplay {
  start_time?: number;
  end_time?: number;
  tenant_id?: string;
  error_code?: OutageCode;
  kind?: ReplayKind;
  request_ids?: string[];
  dry_run?: boolean;
  limit?: number;
  page?: string;
}

const newReplaySchema = Joi.object<NewReplay, true>({
  start_time: unixSecondsSchema(0).description('Only what failed then or later, in Unix seconds.'),
  end_time: unixSecondsSchema(0).description('Only what failed before then, in Unix seconds.'),
  tenant_id: givenId('ten', 'a tenant').description('Only of this tenant.'),
  error_code: Joi.string()
    .valid(...OUTAGE_CODES)
    .description('Only what failed with this code.'),
  kind: Joi.string()
    .valid(...REPLAY_KINDS)
    .description(
      '`keyed`: sent under an `Idempotency-Key`; `async`: with `Prefer: respond-async` and no key; `batch`: lines of batches that run.',
    ),
  request_ids: Joi.array()
    .items(givenId('req', 'a request'))
    .min(1)
    .max(IDS_MAX)
    .unique()
    .description('Only these requests.'),
  dry_run: Joi.boolean().description('Says what would be replayed, and changes nothing.'),
  limit: countSchema(1, LIMIT_MAX).description(`Requests in one call, ${LIMIT} by default.`),
  page: Joi.string()
    .pattern(/^(batch\.)?\d{1,16}\.req_[0-9A-Za-z]{24}$/)
    .messages({ 'string.pattern.base': '{{#label}} must be the `next_page` of the page before' })
    .description('`next_page` of the page before, with the same filter.'),
}).required();

const replayedResource = resource<[one: ReplayedOne]>('ReplayedRequest', {
  id: field(id('req'), PATH_PARAMETERS.requestId.example, ({ requestId }) => requestId),
  tenant_id: field(nullable(id('ten')), PATH_PARAMETERS.tenantId.example, ({ failed }) => failed?.tenantId),
  kind: field(nullable(oneOf(REPLAY_KINDS)), 'async', ({ failed }) => failed?.kind),
  error_code: field(nullable(oneOf(OUTAGE_CODES)), 'model_unavailable', ({ failed }) => failed?.code),
  created_at: field(nullable(time('Time of acceptance')), 1_795_255_200, ({ failed }) =>
    toSecondsOrNull(failed?.acceptedAt),
  ),
  failed_at: field(nullable(time('Time of the failure')), 1_795_255_230, ({ failed }) =>
    toSecondsOrNull(failed?.failedAt),
  ),
  outcome: field(
    oneOf(['matched', 'replayed', 'skipped'], '`matched` in a dry run.'),
    'replayed',
    ({ outcome }) => outcome.kind,
  ),
  reason: field(nullable(oneOf(Object.keys(SKIP_REASONS), 'Why it was skipped.')), null, ({ outcome }) =>
    outcome.kind === 'skipped' ? outcome.reason : null,
  ),
});

const REASONS = Object.entries(SKIP_REASONS)
  .map(([reason, meaning]) => `\`${reason}\`: ${meaning}`)
  .join(' ');

const replaySchema = named(
  'RequestReplay',
  object({
    object: constant('request.replay'),
    dry_run: boolean(),
    matched: integer('Failed requests that the filter finds, on all pages.', 0),
    replayed: integer('Requests of this page that run again.', 0),
    skipped: integer('Requests of this page that do not.', 0),
    skipped_reasons: listOf(
      object({ reason: oneOf(Object.keys(SKIP_REASONS), REASONS), count: integer(undefined, 1) }),
    ),
    retry_after_seconds: nullable(integer('When what was skipped for want of room may be replayed.', 1)),
    data: listOf(replayedResource.schema, 'This page, in the order of acceptance.'),
    has_more: boolean(),
    next_page: nullable(text('`page` of the next call; null on the last page.')),
  }),
);

function filterOf({ start_time, end_time, tenant_id, error_code, kind, request_ids }: NewReplay): FailedFilter {
  if (start_time !== undefined && end_time !== undefined && end_time <= start_time)
    throw new ServiceError('invalid_request', '`end_time` must be after `start_time`.', { param: 'end_time' });
  return {
    ...(start_time === undefined ? {} : { from: start_time * 1000 }),
    ...(end_time === undefined ? {} : { before: end_time * 1000 }),
    ...(tenant_id === undefined ? {} : { tenantId: tenant_id }),
    ...(error_code === undefined ? {} : { code: error_code }),
    ...(kind === undefined ? {} : { kind }),
    ...(request_ids === undefined ? {} : { requestIds: request_ids }),
  };
}

function positionOf(page: string | undefined): FailedPosition | undefined {
  const [requestId, time, isLine] = page?.split('.').reverse() ?? [];
  if (requestId === undefined) return undefined;
  const at = Number(time);
  return { kind: isLine === undefined ? 'async' : 'batch', acceptedAt: at, failedAt: at, requestId };
}

function pageAfter({ kind, acceptedAt, failedAt, requestId }: FailedPosition): string {
  return kind === 'batch' ? `batch.${failedAt}.${requestId}` : `${acceptedAt}.${requestId}`;
}

function toReply({ matched, requests, next }: ReplayReport, isDryRun: boolean) {
  const skipped = requests.flatMap(({ outcome }) => (outcome.kind === 'skipped' ? [outcome] : []));
  const byReason = Map.groupBy(skipped, ({ reason }) => reason);
  const waitMs = Math.max(0, ...skipped.map(({ retryAfterMs }) => retryAfterMs));
  return {
    object: 'request.replay',
    dry_run: isDryRun,
    matched,
    replayed: requests.filter(({ outcome }) => outcome.kind === 'replayed').length,
    skipped: skipped.length,
    skipped_reasons: [...byReason].map(([reason, { length: count }]) => ({ reason, count })),
    retry_after_seconds: waitMs === 0 ? null : toRetrySeconds(waitMs),
    data: requests.map((one) => replayedResource.of(one)),
    has_more: next !== undefined,
    next_page: next === undefined ? null : pageAfter(next),
  };
}

export interface RequestsDeps {
  replayFailed: ReplayFailed;
}

const replayRequests = defineAdminEndpoint({
  method: 'POST',
  path: '/requests/replay',
  tag: 'Requests',
  summary: 'Replay failed requests',
  description: [
    'Runs asynchronous requests, requests under an `Idempotency-Key` and lines of running batches again that failed in an',
    'outage, without text and without a charge. Each keeps its id (a line its `custom_id`), which then answers with the',
    'new result, and is charged at most once. A failed',
    'request can be replayed for 24 hours after its acceptance, from some seconds after its failure on.',
    'The order of calls does not matter: what runs already, or has been replayed, is not found any more.',
  ].join(' '),
  headers: ['Idempotency-Key'],
  isRemembered: true,
  body: jsonBody('NewRequestReplay', newReplaySchema),
  answers: { 200: json('What became of the requests.', replaySchema, ['Idempotent-Replayed']) },
  errors: ['conflict', 'idempotency_mismatch'],
  examples: {
    dry_run: {
      summary: 'What failed since the outage began',
      body: { start_time: 1_795_255_200, dry_run: true },
      status: 200,
      answer: toReply({ matched: 0, requests: [], next: undefined }, true),
    },
    outage: {
      summary: 'Replay what one tenant’s requests failed with in an hour',
      body: {
        start_time: 1_795_255_200,
        end_time: 1_795_258_800,
        tenant_id: PATH_PARAMETERS.tenantId.example,
        error_code: 'model_unavailable',
        kind: 'async',
        limit: 100,
      },
      status: 200,
      answer: {
        ...toReply({ matched: 1, requests: [], next: undefined }, false),
        replayed: 1,
        data: [replayedResource.example],
      },
    },
  },
  async handle({ body }, { replayFailed }: RequestsDeps) {
    const { dry_run: isDryRun = false, limit = LIMIT, page } = body;
    return ok(
      toReply(await replayFailed({ filter: filterOf(body), after: positionOf(page), limit, isDryRun }), isDryRun),
    );
  },
});

/** Requests of all tenants (docs/spec.md#replay). */
export const requestsEndpoints = { replayRequests };
