import type { Response } from 'express';

import type { Principal } from '../../shared/domain/keys/principal.ts';
import { ADDRESS_FAILURES_PER_MINUTE } from '../../shared/domain/limits/defaults.ts';
import type { WindowFigures } from '../../shared/infra/redis/admission-store.ts';

/** Whole seconds until the window is empty, at least 1 while anything is in it (contract.md section 2). */
function resetSeconds(resetMs: number): number {
  return Math.max(0, Math.ceil(resetMs / 1000));
}

function setFamily(res: Response, family: 'Requests' | 'Tokens', limit: number, used: number, resetMs: number): void {
  res.setHeader(`X-RateLimit-Limit-${family}`, limit);
  res.setHeader(`X-RateLimit-Remaining-${family}`, Math.max(0, limit - used));
  res.setHeader(`X-RateLimit-Reset-${family}`, resetSeconds(resetMs));
}

const UNKNOWN: WindowFigures = { requests: 0, requestsResetMs: 0, tokens: 0, tokensResetMs: 0 };

/** Without `figures` (Redis is away) the headers name the limits as if nothing had been used. */
export function setKeyHeaders(res: Response, { limits }: Principal, figures: WindowFigures = UNKNOWN): void {
  setFamily(res, 'Requests', limits.rpm, figures.requests, figures.requestsResetMs);
  setFamily(res, 'Tokens', limits.tpm, figures.tokens, figures.tokensResetMs);
}

/** For a request without a valid key: the limit on failed authentications of its address. */
export function setAddressHeaders(
  res: Response,
  figures: Pick<WindowFigures, 'requests' | 'requestsResetMs'> = UNKNOWN,
): void {
  setFamily(res, 'Requests', ADDRESS_FAILURES_PER_MINUTE, figures.requests, figures.requestsResetMs);
}
