import type { AdmissionOutcome } from '../../shared/admission/admission.ts';
import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { FORGOTTEN } from '../../shared/infra/redis/requests/record-store.ts';
import type { RecordStore, RequestRecord } from '../../shared/infra/redis/requests/record-store.ts';
import type { RelayHub } from '../relay/hub.ts';
import { isOfRequest } from './idempotency.ts';
import type { IntentKeeper } from './keep-intent.ts';
import type { Recall } from './recall.ts';

export interface JoinDeps {
  hub: Pick<RelayHub, 'channelOf'>;
  records: Pick<RecordStore, 'attach'>;
  recall: Pick<Recall, 'byId'>;
  intentKeeper: Pick<IntentKeeper, 'waitUntilStored'>;
}

export function noLongerKept(): ServiceError {
  return new ServiceError('gone', 'The answer under this Idempotency-Key is no longer kept; send a new key.');
}

/**
 * Joins a call to the request that an earlier call with its Idempotency-Key, or an earlier try of it, made. Throws
 * `idempotency_mismatch` for a different body, and `gone` if the answer under the key is no longer kept. Undefined: Redis no
 * longer knows the request, or what a try would need of it.
 */
export function createJoin({ hub, records, recall, intentKeeper }: JoinDeps) {
  return async (
    { requestId, fingerprint }: AdmissionOutcome & { kind: 'joined' },
    request: ChatRequest,
    principal: Principal,
    { idempotencyKey, async = false }: { idempotencyKey?: string | undefined; async?: boolean },
  ): Promise<RequestRecord | undefined> => {
    if (fingerprint === FORGOTTEN) throw noLongerKept();
    if (!isOfRequest(fingerprint, request)) {
      throw new ServiceError(
        'idempotency_mismatch',
        'This Idempotency-Key was used with another body; send a new key with a new request.',
      );
    }
    const attach = () => records.attach(principal, requestId, hub.channelOf(principal.shard));
    let record = await attach();
    if (record === undefined && (await recall.byId(principal, requestId))) record = await attach();
    if (record === undefined) return undefined;
    if (record.isGone) {
      if (idempotencyKey === undefined) return undefined;
      throw noLongerKept();
    }
    // The earlier call may still be refused.
    if (async && record.state !== 'done')
      await intentKeeper.waitUntilStored(principal, record.requestId, async () => (await attach())?.state === 'done');
    return record;
  };
}
