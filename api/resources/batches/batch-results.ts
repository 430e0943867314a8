import type { Response } from 'express';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { decodeEntry } from '../../../shared/contracts/events.ts';
import { toErrorObject } from '../../../shared/errors/error-body.ts';
import type { BatchLineRow } from '../../../shared/mongo/batches/batch-lines.ts';
import type { BatchRepository, BatchRow } from '../../../shared/mongo/batches/batch-repository.ts';
import { defineEndpoint, SENT } from '../../contract/endpoint.ts';
import { errorObjectSchema, id, named, nullable, object, text } from '../../contract/json-schema.ts';
import { found, PATH_PARAMETERS } from '../../contract/path-parameters.ts';
import { answerHead, around, outcomeOf } from '../../relay/sse.ts';
import type { EndedAs, JsonText } from '../../relay/sse.ts';
import { dropUnread, writeJson } from '../../relay/paced-writer.ts';
import { DRAIN_MS } from '../../relay/answer.ts';
import type { RelayTimes } from '../../relay/answer.ts';
import type { ReaderPlaces } from '../../relay/reader-places.ts';
import { completionSchema, embeddingListSchema } from '../../chat/completion-schemas.ts';

const resultSchema = named(
  'BatchResult',
  object(
    {
      custom_id: nullable(text('Null where the request had none that could be read.')),
      request_id: id('req'),
      response: { anyOf: [completionSchema, embeddingListSchema] },
      error: errorObjectSchema,
    },
    ['response', 'error'],
  ),
);

const RESULT_EXAMPLE = {
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

/** Lines that are in memory at a time; fewer, where they are large. */
const PAGE_LINES = 20;

function endOf({ requestId, error, fields = {}, entries = [] }: BatchLineRow): EndedAs {
  if (error !== undefined) return { error: toErrorObject(error, requestId) };
  const head = answerHead({
    requestId,
    acceptedAt: Number(fields['acceptedAt']),
    tier: fields['tier'] ?? '',
    // A field that a record does not have is empty text.
    name: fields['model'] === '' ? undefined : fields['model'],
    metadataJson: fields['metadata'] === '' ? undefined : fields['metadata'],
  });
  const stream = entries.map(({ lastSeq, payload }) => decodeEntry(lastSeq, payload));
  const outcome = outcomeOf(head, stream);
  if (outcome === undefined) throw new Error(`The line of ${requestId} has ended without an end`);
  return outcome;
}

/** One line of the results: `{custom_id, request_id, response | error}` (docs/spec.md#batches). */
function toResultLine(line: BatchLineRow): JsonText {
  const end = endOf(line);
  const before = `{"custom_id":${JSON.stringify(line.customId)},"request_id":"${line.requestId}",`;
  return 'error' in end
    ? `${before}"error":${JSON.stringify(end.error)}}\n`
    : around(`${before}"response":`, end.responseJson, '}\n');
}

const RESULTS_TYPE = 'application/x-ndjson';

/**
 * Sends what has ended of a batch as NDJSON, in the order of its lines, no faster than the client reads. Throws before
 * the first byte what can be an HTTP error; a fault after it cuts the connection.
 */
async function sendResults(
  res: Response,
  { _id: batchId, tenantId, total }: BatchRow,
  { batches, drainMs }: { batches: BatchRepository; drainMs: number },
): Promise<void> {
  const pageAfter = (after: number) => batches.results(tenantId, batchId, after, PAGE_LINES);
  let page = await pageAfter(-1);
  res.type(RESULTS_TYPE);
  for (;;) {
    for (const line of page.lines) {
      if (!(await writeJson(res, toResultLine(line), drainMs))) return;
    }
    if (page.last >= total - 1 || res.destroyed) break;
    page = await pageAfter(page.last);
  }
  res.end();
  dropUnread(res, drainMs);
}

interface BatchResultsDeps {
  batches: BatchRepository;
  readerPlaces: ReaderPlaces;
  relayTimes: RelayTimes;
}

const DAYS_KEPT = (BATCH_LIMITS.keptMs - BATCH_LIMITS.lifeMs) / 86_400_000;

export const getBatchResults = defineEndpoint({
  method: 'GET',
  path: '/batches/:batchId/results',
  scopes: ['chat'],
  tag: 'Batches',
  summary: 'Retrieve the results of a batch',
  description: `One result a line, in the order of the requests, with \`response\` or \`error\`. Results can be read while other requests are in progress. They are kept for ${DAYS_KEPT} days.`,
  answers: { 200: { description: 'Lines of JSON.', content: { [RESULTS_TYPE]: resultSchema } } },
  examples: { ended: { status: 200, answer: `${JSON.stringify(RESULT_EXAMPLE)}\n` } },
  async handle({ req, res, principal, params }, { batches, readerPlaces, relayTimes }: BatchResultsDeps) {
    const batch = found(await batches.find(principal, params.batchId), 'batchId');
    // A request for the head alone reads no line.
    if (req.method === 'HEAD') {
      res.type(RESULTS_TYPE).end();
      return SENT;
    }
    readerPlaces.enterDownload(res, principal);
    await sendResults(res, batch, { batches, drainMs: relayTimes.drainMs ?? DRAIN_MS });
    return SENT;
  },
});
