import type { Request, RequestHandler, Response } from 'express';

import type { Space } from '../../shared/contracts/space.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type {
  IdempotencyClaim,
  IdempotencyRepository,
  IdempotentAnswer,
} from '../../shared/mongo/requests/idempotency-repository.ts';
import { pollUntil } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { idempotencyKeyOf, idempotencyOf } from './request-terms.ts';
import { contextOf, principalOf } from './request-context.ts';

export interface ReplayDeps {
  idempotency: IdempotencyRepository;
  clock: Clock;
  log: Logger;
}

/** Fields that are shown only once; they are neither stored nor replayed. */
const SHOWN_ONCE: ReadonlySet<string> = new Set(['value', 'secret']);

/** A second call waits this long for the first one under the same key. */
const WAIT_MS = 3_000;

/** A third of the time after which a claim lapses. */
const RENEW_MS = 15_000;
const RUN_MS_MAX = 15 * 60_000;

function withoutSecrets(body: unknown): string {
  if (typeof body !== 'object' || body === null) return JSON.stringify(body);
  return JSON.stringify(Object.fromEntries(Object.entries(body).filter(([name]) => !SHOWN_ONCE.has(name))));
}

/** The entity that a resource is about: deleting the entity must also delete the stored answer. */
function entityIdOf(body: unknown): string | undefined {
  const isEntity = typeof body === 'object' && body !== null && 'entity_id' in body;
  return isEntity && typeof body.entity_id === 'string' ? body.entity_id : undefined;
}

/** Passes the answer to `settle` before the caller gets it. */
function beforeAnswer(res: Response, settle: (body: unknown) => Promise<void>): void {
  const send = res.json.bind(res);
  res.json = (body: unknown) => {
    res.json = send;
    void settle(body).finally(() => send(body));
    return res;
  };
}

function repeat(res: Response, { status, bodyJson, location }: IdempotentAnswer): void {
  res.setHeader('Idempotent-Replayed', 'true');
  if (location !== undefined) res.setHeader('Location', location);
  res.status(status).type('json').send(bodyJson);
}

/** Renews the claim until the returned function is called. */
function renewClaim({ idempotency, clock }: ReplayDeps, tenantId: string, claimed: IdempotencyClaim): () => void {
  const end = clock.now() + RUN_MS_MAX;
  const timer = setInterval(() => {
    const now = clock.now();
    if (now > end) clearInterval(timer);
    // A failed renewal is repeated at the next interval.
    idempotency.renew(tenantId, claimed, now).catch(() => undefined);
  }, RENEW_MS).unref();
  return () => {
    clearInterval(timer);
  };
}

function storeAnswer(deps: ReplayDeps, res: Response, tenantId: string, claimed: IdempotencyClaim): void {
  const { idempotency, log } = deps;
  const stopRenewing = renewClaim(deps, tenantId, claimed);
  beforeAnswer(res, async (body) => {
    stopRenewing();
    const { statusCode: status } = res;
    const location = res.getHeader('Location');
    try {
      if (status >= 500) return;
      if (status >= 300) await idempotency.release(tenantId, claimed);
      else {
        const answer = {
          status,
          bodyJson: withoutSecrets(body),
          location: location?.toString(),
          entityId: entityIdOf(body),
        };
        await idempotency.storeAnswer(tenantId, claimed, answer);
      }
    } catch (error) {
      // The work is done, so the caller gets its answer. A retry within the next minute will get a conflict.
      log.error('The answer under an Idempotency-Key could not be kept.', { requestId: claimed.owner, error });
    }
  });
}

/**
 * `Idempotency-Key` outside chat (docs/spec.md#idempotency): a call runs once, and its success is replayed for 24
 * hours. A 4xx has changed nothing and is not stored, so a retry runs. A 5xx may have changed something: the key stays
 * claimed until the claim lapses; then a retry finds what the first call created by the id that both derive
 * (`idForNew`). Mount it after the body's reader and before a handler that answers with `res.json`.
 */
export function createReplay(
  deps: ReplayDeps,
  spaceOf: (res: Response) => Space = principalOf,
): (family: string) => RequestHandler {
  return (family) => async (req: Request, res, next) => {
    const key = idempotencyKeyOf(req);
    if (key === undefined) {
      next();
      return;
    }
    const space = spaceOf(res);
    const { tenantId } = space;
    const request = { path: req.path, body: req.body as unknown };
    const wanted = { ...(await idempotencyOf(space, family, key, request)), owner: contextOf(res).requestId };
    const claim = () => deps.idempotency.claim(space, wanted, deps.clock.now());
    const verdict = await pollUntil(deps.clock, WAIT_MS, claim, ({ kind }) => kind !== 'running');
    if (verdict.kind !== 'mine') await contextOf(res).discard?.();
    switch (verdict.kind) {
      case 'mine':
        contextOf(res).run = {
          name: `${wanted.name} ${verdict.firstOwner}`,
          isRepeat: verdict.firstOwner !== wanted.owner,
        };
        storeAnswer(deps, res, tenantId, wanted);
        next();
        return;
      case 'answered':
        repeat(res, verdict.answer);
        return;
      case 'running':
        throw new ServiceError('conflict', 'A request with this Idempotency-Key is still running; try again shortly.', {
          retryAfterSeconds: 1,
        });
      case 'mismatch':
        throw new ServiceError(
          'idempotency_mismatch',
          'This Idempotency-Key was used with another body or path; send a new key with a new request.',
        );
    }
  };
}
