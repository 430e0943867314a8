import type { Response } from 'express';

import type { Principal } from '../../shared/domain/keys/principal.ts';
import { ADDRESS_FAILURES_PER_MINUTE } from '../../shared/domain/limits/defaults.ts';
import type { WindowFigures } from '../../shared/infra/redis/requests/admission-store.ts';

/** Whole seconds until the window is empty, at least 1 while anything is in it (docs/spec/contract.md section 2). */
function resetSeconds(resetMs: number): number {
  return Math.max(0, Math.ceil(resetMs / 1000));
}

type Headers = Record<string, number>;

function familyOf(family: 'Requests' | 'Tokens', limit: number, used: number, resetMs: number): Headers {
  return {
    [`X-RateLimit-Limit-${family}`]: limit,
    [`X-RateLimit-Remaining-${family}`]: Math.max(0, limit - used),
    [`X-RateLimit-Reset-${family}`]: resetSeconds(resetMs),
  };
}

function setAll(res: Response, headers: Headers): void {
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
}

const UNKNOWN: WindowFigures = { requests: 0, requestsResetMs: 0, tokens: 0, tokensResetMs: 0 };

/** Without `figures` (Redis is away) the headers name the limits as if nothing had been used. */
export function setKeyHeaders(res: Response, { limits }: Principal, figures: WindowFigures = UNKNOWN): void {
  setAll(res, familyOf('Requests', limits.rpm, figures.requests, figures.requestsResetMs));
  setAll(res, familyOf('Tokens', limits.tpm, figures.tokens, figures.tokensResetMs));
}

type AddressFigures = Pick<WindowFigures, 'requests' | 'requestsResetMs'>;

/** For a request without a valid key: the limit on failed authentications of its address. */
export function addressHeaders({ requests, requestsResetMs }: AddressFigures = UNKNOWN): Headers {
  return familyOf('Requests', ADDRESS_FAILURES_PER_MINUTE, requests, requestsResetMs);
}

export function setAddressHeaders(res: Response, figures?: AddressFigures): void {
  setAll(res, addressHeaders(figures));
}
