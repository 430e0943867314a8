import { setTimeout as delay } from 'node:timers/promises';

import type { Response, Router } from 'express';

import type { Principal } from '../../../shared/domain/keys/principal.ts';
import type { LedgerRepository } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import type { RecordStore, RequestRecord } from '../../../shared/infra/redis/requests/record-store.ts';
import type { StreamReader } from '../../../shared/infra/redis/requests/stored-answers.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { Recall } from '../../admission/recall.ts';
import { principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import { dropUnread } from '../../relay/drop-unread.ts';
import { DRAIN_MS } from '../../relay/forward.ts';
import type { RelayTimes } from '../../relay/forward.ts';
import { pathParam } from '../../contract/path-id.ts';
import { findRequest } from './find-request.ts';
import { toRequestResource } from './resource.ts';

export interface ChatRequestsDeps {
  serve: ServeEndpoints;
  records: RecordStore;
  streams: StreamReader;
  ledger: LedgerRepository;
  recall: Recall;
  clock: Clock;
  relayTimes: RelayTimes;
}

/** Its worker hears of a cancel at once, or at the next renewal of its lease; the answer waits that long for it. */
const CANCEL_WAIT_MS = 4_000;
const CANCEL_POLL_MS = 50;

/** `GET /chat/{request_id}` and `POST /chat/{request_id}/cancel` (docs/spec/contract.md section 3). */
export function createChatRequestsRoute(deps: ChatRequestsDeps): Router {
  const { serve, records, streams, ledger, clock, relayTimes } = deps;

  async function describe(principal: Principal, record: RequestRecord) {
    const { requestId, state } = record;
    const entries = await streams.readFrom(principal.shard, requestId, 1);
    const settledAt =
      state === 'done' ? await ledger.settledAt(principal.tenantId, requestId).catch(() => undefined) : undefined;
    return toRequestResource(record, entries, settledAt);
  }

  /** With the answer in it, it may be as large as the answer. */
  function send(res: Response, resource: object): void {
    res.json(resource);
    dropUnread(res, relayTimes.drainMs ?? DRAIN_MS);
  }

  async function untilDone(principal: Principal, requestId: string): Promise<RequestRecord | undefined> {
    const until = clock.now() + CANCEL_WAIT_MS;
    for (;;) {
      const record = await records.find(principal, requestId);
      if (record === undefined || record.state === 'done' || clock.now() > until) return record;
      await delay(CANCEL_POLL_MS);
    }
  }

  return serve({
    getChatRequest: async (req, res) => {
      const principal = principalOf(res);
      const requestId = pathParam(req, 'requestId');
      const record = await findRequest(deps, principal, requestId, () => records.find(principal, requestId));
      send(res, await describe(principal, record));
    },

    cancelChatRequest: async (req, res) => {
      const principal = principalOf(res);
      const requestId = pathParam(req, 'requestId');
      const record = await findRequest(deps, principal, requestId, async () => {
        const known = await records.cancel(principal, requestId);
        return known ? untilDone(principal, requestId) : undefined;
      });
      send(res, await describe(principal, record));
    },
  });
}
