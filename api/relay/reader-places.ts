import type { ServerResponse } from 'node:http';

import type { Principal } from '../../shared/domain/principal.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';

/** Limits on resumed streams, per ingress (docs/spec.md#resume, docs/spec.md#compliance). */
const REQUEST_READERS_MAX = 4;
const KEY_STREAMS_MAX = 200;
/** Batch results, export archives and many vectors that a tenant may download at a time. Each holds a page in memory. */
const TENANT_DOWNLOADS_MAX = 8;

/** A place becomes free when a stream ends or its client leaves, and nobody knows when that will be. */
const RETRY_SECONDS = 5;

/** Limits the readers of one request and the streams one key reads, not counting the calls that made the requests. */
export type ReaderPlaces = ReturnType<typeof createReaderPlaces>;

function createCounts() {
  const counts = new Map<string, number>();
  const of = (name: string) => counts.get(name) ?? 0;
  return {
    of,
    add(name: string, change: 1 | -1): void {
      const count = of(name) + change;
      if (count === 0) counts.delete(name);
      else counts.set(name, count);
    },
  };
}

function refuse(message: string): ServiceError {
  return new ServiceError('rpm_exceeded', message, { retryAfterSeconds: RETRY_SECONDS });
}

export function createReaderPlaces() {
  const ofRequest = createCounts();
  const ofKey = createCounts();
  const downloads = createCounts();

  function change(read: string, keyId: string, by: 1 | -1): void {
    ofRequest.add(read, by);
    ofKey.add(keyId, by);
  }

  return {
    /** Throws `rpm_exceeded` if no place is free. The returned function gives the place back, once. */
    enter(requestId: string, { tenantId, keyId }: Pick<Principal, 'tenantId' | 'keyId'>): () => void {
      // The request's owner is not known yet: another tenant's readers neither take its places nor learn of them.
      const read = `${tenantId} ${requestId}`;
      if (ofRequest.of(read) >= REQUEST_READERS_MAX) {
        throw refuse(
          `The limit of ${REQUEST_READERS_MAX} readers of one request is reached; close one, or wait as Retry-After says.`,
        );
      }
      if (ofKey.of(keyId) >= KEY_STREAMS_MAX) {
        throw refuse(
          `The key's limit of ${KEY_STREAMS_MAX} resumed streams at a time is reached; close some, or wait as Retry-After says.`,
        );
      }
      change(read, keyId, 1);
      let hasLeft = false;
      return () => {
        if (!hasLeft) change(read, keyId, -1);
        hasLeft = true;
      };
    },

    /** Takes a tenant's place for a download until its connection has taken all of it or closed. Throws like `enter`. */
    enterDownload(res: ServerResponse, { tenantId }: Pick<Principal, 'tenantId'>): void {
      if (downloads.of(tenantId) >= TENANT_DOWNLOADS_MAX) {
        throw refuse(
          `The account's limit of ${TENANT_DOWNLOADS_MAX} downloads at a time is reached; finish one, or wait as Retry-After says.`,
        );
      }
      // A client that left while its call was looked up causes no more `close` event.
      if (res.closed) return;
      downloads.add(tenantId, 1);
      res.once('close', () => {
        downloads.add(tenantId, -1);
      });
    },
  };
}
