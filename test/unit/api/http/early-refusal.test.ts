import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';

import { createEarlyRefusal } from '../../../../api/http/early-refusal.ts';
import { assignRequestId, contextOf } from '../../../../api/http/request-context.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';
import type { Admission } from '../../../../shared/requests/admission-store.ts';
import { principalOf } from '../../../support/request-lab.ts';

const FREE: Admission = {
  verdict: 'admitted',
  requests: 1,
  requestsResetMs: 60_000,
  tokens: 0,
  tokensResetMs: 0,
  retryAfterMs: 0,
  estimateTokens: 0,
  seq: 1,
  now: 0,
};
const MEGABYTE = 1024 * 1024;
const overTokens = () => new ServiceError('tpm_exceeded', 'too many tokens', { retryAfterSeconds: 60 });

/** Calls of one key, at a time of the test's. Its requests a minute are free unless the test says otherwise. */
function startCalls() {
  let now = 0;
  let found = FREE;
  let hasName = false;
  let mayWrite = Promise.resolve();
  const early = createEarlyRefusal(
    { count: () => Promise.resolve(found) },
    { isNamed: () => Promise.resolve(hasName) },
    () => mayWrite,
    { now: () => now },
  );
  const principal = principalOf({});

  /** The refusal of a call with a body of so many bytes; undefined: its body is read, up to its limit. */
  async function call(bytes: number | 'chunked', idempotencyKey?: string) {
    const req = new IncomingMessage(new Socket());
    req.headers[bytes === 'chunked' ? 'transfer-encoding' : 'content-length'] = String(bytes);
    // Of what Express adds, nothing else is used here.
    Object.assign(req, { route: { path: '/chat' }, get: () => idempotencyKey });
    const res = new ServerResponse(req) as Response;
    assignRequestId(req as Request, res);
    contextOf(res).principal = principal;
    let refusal: ServiceError | undefined;
    try {
      await early.refuse(req as Request, res);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      refusal = error;
      early.note(error, res);
    }
    /** Admission refuses the body that was read. */
    const refuse = (error: ServiceError) => {
      early.note(error, res);
    };
    return { refusal, refuse, limit: contextOf(res).bodyLimit };
  }

  return {
    call,
    pass: (ms: number) => (now += ms),
    fillMinute: () => (found = { ...FREE, verdict: 'rpm', retryAfterMs: 20_000 }),
    know: () => (hasName = true),
    /** The tenant has written all that it may. */
    fillPace(error = new ServiceError('rpm_exceeded', 'too much', { retryAfterSeconds: 30 })) {
      (mayWrite = Promise.reject(error)).catch(() => undefined);
    },
  };
}

describe('a costly body behind one that was refused for its tokens', () => {
  it('is refused for ten seconds, however often it comes', async () => {
    const { call, pass } = startCalls();
    (await call(MEGABYTE)).refuse(overTokens());
    pass(9_000);
    expect((await call(MEGABYTE)).refusal).toBeDefined();

    pass(1_000);

    expect((await call(MEGABYTE)).refusal).toBeUndefined();
  });
});

describe('a call whose Idempotency-Key is known', () => {
  it('waits for the minute, which it counts in, and not for the day', async () => {
    const { call, fillMinute, know } = startCalls();
    (await call(100)).refuse(new ServiceError('rpm_exceeded', 'too many a day', { retryAfterSeconds: 3_600 }));
    fillMinute();
    know();

    expect((await call(100)).refusal).toMatchObject({ retryAfterSeconds: 3_600 });
    expect((await call(100, 'K')).refusal).toMatchObject({ code: 'rpm_exceeded', retryAfterSeconds: 20 });
  });
});

describe('a tenant that has written all that it may', () => {
  it('is refused costly bodies that are to be kept, unread, and no others', async () => {
    const { call, fillPace } = startCalls();
    fillPace();

    expect((await call(MEGABYTE, 'K')).refusal).toMatchObject({ code: 'rpm_exceeded', retryAfterSeconds: 30 });
    expect((await call('chunked', 'K')).limit).toMatchObject({ bytes: 256 * 1024 });
    expect((await call(100, 'K')).refusal).toBeUndefined();
    expect((await call(MEGABYTE)).refusal).toBeUndefined();
  });
});
