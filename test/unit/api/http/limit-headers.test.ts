import { ServerResponse, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

import { describe, expect, it } from '@jest/globals';
import type { Response } from 'express';

import { setKeyHeaders } from '../../../../api/http/count-requests.ts';
import type { Principal } from '../../../../shared/domain/principal.ts';

// The functions read the limits alone.
const LIMITS = { limits: { rpm: 60, tpm: 1_000 } } as Principal;
const IDLE = { requests: 0, requestsResetMs: 0, tokens: 0, tokensResetMs: 0 };

/** The headers that `set` leaves on a response. */
function headersOf(set: (res: Response) => void): Record<string, unknown> {
  const res = new ServerResponse(new IncomingMessage(new Socket()));
  // The functions use nothing of Express.
  set(res as unknown as Response);
  return { ...res.getHeaders() };
}

const forKey = (figures: Partial<typeof IDLE>) =>
  headersOf((res) => {
    setKeyHeaders(res, LIMITS, { ...IDLE, ...figures });
  });

describe('the rate-limit headers', () => {
  it('say at least 1 s while anything is in the window, and 0 when it is empty', () => {
    expect(forKey({ requests: 1, requestsResetMs: 1 })).toMatchObject({ 'x-ratelimit-reset-requests': 1 });
    expect(forKey({})).toMatchObject({ 'x-ratelimit-reset-requests': 0, 'x-ratelimit-reset-tokens': 0 });
  });

  it('never promise less than nothing, as when a limit was lowered', () => {
    expect(forKey({ requests: 61, tokens: 5_000 })).toMatchObject({
      'x-ratelimit-remaining-requests': 0,
      'x-ratelimit-remaining-tokens': 0,
    });
  });

  it('name the limits alone while the figures are unknown', () => {
    expect(
      headersOf((res) => {
        setKeyHeaders(res, LIMITS);
      }),
    ).toMatchObject({
      'x-ratelimit-limit-requests': 60,
      'x-ratelimit-remaining-requests': 60,
      'x-ratelimit-reset-requests': 0,
    });
  });
});
