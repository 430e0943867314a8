import type { Principal } from '../../../shared/domain/keys/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Recall } from '../../admission/recall.ts';
import type { LedgerRepository } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import type { RequestRecord } from '../../../shared/infra/redis/requests/record-store.ts';

export interface FindRequestDeps {
  ledger: Pick<LedgerRepository, 'settledAt'>;
  recall: Recall;
}

const REQUEST_ID = /^req_[0-9A-Za-z]{24}$/;

/**
 * The record that `look` finds. Throws `not_found` for an unknown or another tenant's id, and `gone` for a request
 * that the ledger knows but whose answer is no longer kept.
 */
export async function findRequest(
  { ledger, recall }: FindRequestDeps,
  principal: Principal,
  requestId: string,
  look: () => Promise<RequestRecord | undefined>,
): Promise<RequestRecord> {
  const notFound = () => new ServiceError('not_found', 'There is no request with this id.');
  if (!REQUEST_ID.test(requestId)) throw notFound();
  let record = await look();
  if (record === undefined && (await recall.byId(principal, requestId))) record = await look();
  if (record !== undefined) return record;
  if ((await ledger.settledAt(principal.tenantId, requestId)) === undefined) throw notFound();
  throw new ServiceError('gone', 'The answer of this request is no longer kept; send a new request.');
}
