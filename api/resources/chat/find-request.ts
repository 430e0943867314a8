import { STORED_ANSWER_MS } from '../../../shared/contracts/stored-answer.ts';
import type { Principal } from '../../../shared/domain/keys/principal.ts';
import { LOOKUPS_PER_MINUTE } from '../../../shared/domain/limits/defaults.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { found } from '../../contract/path-parameters.ts';
import type { Recall } from '../../admission/recall.ts';
import type { LedgerRepository } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import type { RequestRecord } from '../../../shared/infra/redis/requests/record-store.ts';

export interface FindRequestDeps {
  ledger: Pick<LedgerRepository, 'settledAt'>;
  recall: Pick<Recall, 'byId'>;
}

const HOURS_KEPT = STORED_ANSWER_MS / 3_600_000;

/** What the document says of every look-up; the first figure is the default of STREAM_RETENTION_SECONDS. */
export const LOOKUP_TEXT = `for 15 minutes after its end (${HOURS_KEPT} hours with an \`Idempotency-Key\` or asynchronously). It does not count against the limit of the key, which allows ${LOOKUPS_PER_MINUTE} look-ups a minute besides.`;

/**
 * The record that `look` finds. Throws `not_found` for an unknown id, another tenant's or one of the other mode, and
 * `gone` for a request that the ledger knows but whose answer is no longer kept.
 */
export async function findRequest(
  { ledger, recall }: FindRequestDeps,
  principal: Principal,
  requestId: string,
  look: () => Promise<RequestRecord | undefined>,
): Promise<RequestRecord> {
  let record = await look();
  if (record === undefined && (await recall.byId(principal, requestId))) record = await look();
  if (record !== undefined && !record.isGone) return record;
  if (record === undefined) found(await ledger.settledAt(principal, requestId), 'requestId');
  throw answerGone();
}

export function answerGone(): ServiceError {
  return new ServiceError('gone', 'The answer of this request is no longer kept; send a new request.');
}
