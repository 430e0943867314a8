import type { Request, Response } from 'express';

import { admissionUnanswered, toRefusal } from '../../shared/requests/refusals.ts';
import type { Admission, AdmissionStore } from '../../shared/requests/admission-store.ts';
import type { AnswerCache } from '../../shared/requests/answers.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { contextOf, principalOf } from './request-context.ts';
import { codingName } from './read-body.ts';
import { setKeyHeaders } from './count-requests.ts';
import type { BatchQueue } from '../../shared/requests/queue-store.ts';
import { idempotencyKeyOf, idempotencyNameOf, keepsNothing, wantsAsync } from './request-terms.ts';
import { putNewest } from '../../shared/domain/bounded-map.ts';

/** Reading a smaller body costs less than asking Redis first. */
const COSTLY_BYTES = 256 * 1024;
/** Refusals are remembered no longer: limits may be raised meanwhile, and tokens given back. */
const HELD_MS_MAX = 10_000;
const REMEMBERED_MAX = 10_000;
/** A body below this part of the refused one may fit. */
const SIMILAR_SIZE_RATIO = 0.9;

/** The last 429 of a key on a chat path. */
interface HeldRefusal {
  until: number;
  retryAt: number;
  code: ErrorCode;
  message: string;
  /** `Content-Length` of the refused body, if it was costly. */
  costlyBytes: number | undefined;
}

function sentBytesOf({ headers }: Request): number {
  return headers['content-length'] === undefined ? Infinity : Number(headers['content-length']);
}

/** A body that is large or may turn out to be: compressed, or of unknown length. */
function isCostly(req: Request): boolean {
  return codingName(req) !== '' || sentBytesOf(req) > COSTLY_BYTES;
}

function heldOf(held: Map<string, HeldRefusal>, name: string, now: number): HeldRefusal | undefined {
  const refusal = held.get(name);
  if (refusal === undefined || refusal.until > now) return refusal;
  held.delete(name);
  return undefined;
}

async function answered<Reply>(asking: Promise<Reply>): Promise<Reply> {
  try {
    return await asking;
  } catch (cause) {
    throw admissionUnanswered(cause);
  }
}

/** The 429 of a tenant that has written all that it may in this minute, where the call is to be kept. */
async function paceOf(mayWrite: BatchQueue['assertMayWrite'], req: Request, res: Response) {
  const principal = principalOf(res);
  const isKept = !keepsNothing(principal) && (idempotencyKeyOf(req) !== undefined || wantsAsync(req));
  if (!isKept) return undefined;
  return mayWrite(principal).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof ServiceError) return error;
      throw admissionUnanswered(error);
    },
  );
}

/** Tells whether an earlier call has made the request that this one asks for. */
async function isJoining(isNamed: AnswerCache['isNamed'], req: Request, res: Response): Promise<boolean> {
  const key = idempotencyKeyOf(req);
  if (key === undefined) return false;
  const principal = principalOf(res);
  return answered(isNamed(principal.shard, idempotencyNameOf(principal, 'chat', key)));
}

/**
 * A 429 takes nothing, so a caller over its limit could make the service read bodies without end. So Redis is asked
 * before the body is read, if the key was refused lately or the body is costly: over its requests a minute, the key
 * gets its 429 at once. Limits that depend on the body (tokens, days) refuse a costly body for some seconds after one
 * of similar size was refused, and one of unknown length once it is no small one. They let a call join the request of
 * its Idempotency-Key, because joining counts as a request. The pace at which a tenant's kept requests are written
 * refuses a costly body as well.
 */
export function createEarlyRefusal(
  { count }: Pick<AdmissionStore, 'count'>,
  { isNamed }: Pick<AnswerCache, 'isNamed'>,
  mayWrite: BatchQueue['assertMayWrite'],
  clock: Clock,
) {
  const held = new Map<string, HeldRefusal>();
  const repeated = new WeakSet<ServiceError>();

  function again({ code, message, retryAt }: HeldRefusal): ServiceError {
    const refusal = new ServiceError(code, message, { retryAfterSeconds: toRetrySeconds(retryAt - clock.now()) });
    repeated.add(refusal);
    return refusal;
  }

  /** Undefined: the body must be read. */
  function refusalOf(req: Request, res: Response, found: Admission, last: HeldRefusal | undefined) {
    if (found.verdict === 'rpm') {
      // Another limit on requests, such as that of a day, may last longer; no body changes that.
      const isLonger = last?.code === 'rpm_exceeded' && last.retryAt - clock.now() > found.retryAfterMs;
      return isLonger ? again(last) : toRefusal({ ...found, verdict: 'rpm' }, principalOf(res), 'chat');
    }
    if (last?.costlyBytes === undefined || !isCostly(req)) return undefined;
    if (sentBytesOf(req) < last.costlyBytes * SIMILAR_SIZE_RATIO) return undefined;
    return again(last);
  }

  async function lookAndRefuse(req: Request, res: Response, last: HeldRefusal | undefined): Promise<void> {
    const found = await answered(count(contextOf(res).requestId, principalOf(res), 'nothing'));
    let refusal = refusalOf(req, res, found, last);
    if (refusal !== undefined && repeated.has(refusal) && (await isJoining(isNamed, req, res)))
      refusal = refusalOf(req, res, found, undefined);
    const pace = refusal === undefined && isCostly(req) ? await paceOf(mayWrite, req, res) : undefined;
    refusal ??= pace;
    if (refusal === undefined) return;
    // Remembered, it would refuse calls that are not kept.
    if (pace !== undefined) repeated.add(pace);
    const fault = () => {
      setKeyHeaders(res, principalOf(res), found);
      return refusal;
    };
    const [isCoded, isOpen] = [codingName(req) !== '', sentBytesOf(req) === Infinity];
    const mayBeSmall = found.verdict !== 'rpm' && (pace !== undefined ? isCoded || isOpen : !isCoded && isOpen);
    if (!mayBeSmall) throw fault();
    contextOf(res).bodyLimit = { bytes: COSTLY_BYTES, fault };
  }

  return {
    /** Refuses before the body is read, if it would not change the answer, or once it has turned out to be costly. */
    refuse(req: Request, res: Response): Promise<void> | undefined {
      // Express types it as any; a route has matched, and its path has one spelling.
      const { path } = req.route as { path: string };
      const name = `${principalOf(res).keyId} ${path}`;
      contextOf(res).chatName = name;
      const last = held.size === 0 ? undefined : heldOf(held, name, clock.now());
      return last !== undefined || isCostly(req) ? lookAndRefuse(req, res, last) : undefined;
    },

    /** Remembers 429s of admission. */
    note(error: ServiceError, res: Response): void {
      const { code, message, retryAfterSeconds = 1 } = error;
      const { chatName: name, bodyLimit } = contextOf(res);
      if (name === undefined || repeated.has(error)) return;
      if (code !== 'rpm_exceeded' && code !== 'tpm_exceeded') return;
      const now = clock.now();
      // A body within its own limit is no costly one.
      const costlyBytes = isCostly(res.req) && bodyLimit === undefined ? sentBytesOf(res.req) : undefined;
      if (costlyBytes === undefined && heldOf(held, name, now)?.costlyBytes !== undefined) return;
      const waitMs = retryAfterSeconds * 1_000;
      held.delete(name);
      const refusal = { code, message, costlyBytes, until: now + Math.min(HELD_MS_MAX, waitMs), retryAt: now + waitMs };
      putNewest(held, name, refusal, REMEMBERED_MAX);
    },
  };
}
