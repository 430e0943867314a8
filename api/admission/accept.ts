import type { Response } from 'express';

import type { ParsedChatBody } from '../../shared/contracts/parse-chat-body.ts';
import type { Endpoint, RequestEnvelope } from '../../shared/contracts/jobs.ts';
import { contextOf, principalOf } from '../middleware/request-context.ts';
import type { RelayHub } from '../relay/hub.ts';
import type { createAdmission } from './admission.ts';
import type { Enqueue } from './enqueue.ts';
import { setKeyHeaders } from './limit-headers.ts';

export interface AcceptDeps {
  admit: ReturnType<typeof createAdmission>;
  enqueue: Enqueue;
  hub: RelayHub;
  onVerdict: (verdict: string) => void;
}

export interface Accepted<R> {
  envelope: RequestEnvelope;
  relay: R;
}

/** contract.md section 2. */
const IGNORED_FIELDS_BYTES_MAX = 512;

function setIgnoredFields(res: Response, names: readonly string[]): void {
  let value = '';
  for (const name of names) {
    const next =
      value === '' ? encodeURIComponent(name.toWellFormed()) : `${value}, ${encodeURIComponent(name.toWellFormed())}`;
    if (next.length > IGNORED_FIELDS_BYTES_MAX) break;
    value = next;
  }
  if (value !== '') res.setHeader('X-Ignored-Fields', value);
}

export type Accept = ReturnType<typeof createAccept>;

/**
 * The way of a valid chat body into the queue, the same for every chat route: admit, open the relay, enqueue. The
 * relay opens before the job exists, so that no event can be missed; `openRelay` makes it.
 */
export function createAccept({ admit, enqueue, hub, onVerdict }: AcceptDeps) {
  return async <R extends { close(): void }>(
    res: Response,
    route: { endpoint: Endpoint; stream: boolean },
    body: ParsedChatBody,
    openRelay: (shard: number, requestId: string) => R,
  ): Promise<Accepted<R>> => {
    const context = contextOf(res);
    const principal = principalOf(res);
    const { requestId } = context;
    setIgnoredFields(res, body.ignoredFields);
    await hub.ensureShard(principal.shard);
    context.counted = true;
    const envelope = await admit({
      requestId,
      principal,
      ...route,
      request: body.request,
      channel: hub.channelOf(principal.shard),
      onFigures: (figures) => {
        setKeyHeaders(res, principal, figures);
        onVerdict(figures.verdict);
      },
    });
    const relay = openRelay(principal.shard, requestId);
    try {
      await enqueue.enqueue(envelope, principal);
    } catch (error) {
      relay.close();
      throw error;
    }
    return { envelope, relay };
  };
}
