import type { Response } from 'express';

import { decodeEntry } from '../../../shared/contracts/events.ts';
import { toErrorObject } from '../../../shared/errors/error-body.ts';
import type { BatchRepository } from '../../../shared/infra/mongo/batches/batch-repository.ts';
import type { BatchLineRow, BatchRow } from '../../../shared/infra/mongo/batches/batch-repository.ts';
import { answerHead } from '../../relay/answer.ts';
import { dropUnread } from '../../relay/drop-unread.ts';
import { outcomeOf } from '../../relay/outcome.ts';
import type { Outcome } from '../../relay/outcome.ts';
import { untilDrained } from '../../relay/until-drained.ts';

/** Lines that are in memory at a time. */
const PAGE_LINES = 100;

function endOf({ requestId, error, fields = {}, entries = [] }: BatchLineRow): Outcome {
  if (error !== undefined) return { error: toErrorObject(error, requestId) };
  const head = answerHead({
    requestId,
    acceptedAt: Number(fields['acceptedAt']),
    tier: fields['tier'] ?? '',
    // A field that a record does not have is empty text.
    metadataJson: fields['metadata'] === '' ? undefined : fields['metadata'],
  });
  const stream = entries.map(({ lastSeq, payload }) => decodeEntry(lastSeq, payload));
  const outcome = outcomeOf(head, stream);
  if (outcome === undefined) throw new Error(`The line of ${requestId} has ended without an end`);
  return outcome;
}

/** One line of the results: `{custom_id, request_id, response | error}` (docs/spec/contract.md section 3). */
function toResultLine(line: BatchLineRow): string {
  const end = endOf(line);
  const outcome = 'error' in end ? `"error":${JSON.stringify(end.error)}` : `"response":${end.responseJson}`;
  return `{"custom_id":${JSON.stringify(line.customId)},"request_id":"${line.requestId}",${outcome}}\n`;
}

/**
 * Sends what has ended of a batch as NDJSON, in the order of its lines, no faster than the client reads. Throws before
 * the first byte what can be an HTTP error; a fault after it cuts the connection.
 */
export async function sendResults(
  res: Response,
  { _id: batchId, tenantId, total }: BatchRow,
  { batches, drainMs }: { batches: Pick<BatchRepository, 'results'>; drainMs: number },
): Promise<void> {
  const pageAfter = (after: number) => batches.results(tenantId, batchId, after, PAGE_LINES);
  let page = await pageAfter(-1);
  res.type('application/x-ndjson');
  for (let next = PAGE_LINES; ; next += PAGE_LINES) {
    for (const line of page) {
      if (!res.write(toResultLine(line)) && !(await untilDrained(res, drainMs))) return;
    }
    if (next >= total || res.destroyed) break;
    page = await pageAfter(next - 1);
  }
  res.end();
  dropUnread(res, drainMs);
}
