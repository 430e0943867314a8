import type { Response } from 'express';

import type { Principal } from '../../shared/domain/keys/principal.ts';
import { ADDRESS_FAILURES_PER_MINUTE } from '../../shared/domain/limits/defaults.ts';
import type { WindowFigures } from '../../shared/infra/redis/requests/admission-store.ts';

/** Whole seconds until the window is empty, at least 1 while it is not (docs/spec.md#headers). */
function resetSeconds(resetMs: number): number {
  return Math.max(0, Math.ceil(resetMs / 1000));
}

function remaining(limit: number, used: number): number {
  return Math.max(0, limit - used);
}

const UNKNOWN: WindowFigures = { requests: 0, requestsResetMs: 0, tokens: 0, tokensResetMs: 0 };

/** Without `figures` (Redis is unavailable) the headers name the limits as if nothing had been used. */
export function setKeyHeaders(res: Response, { limits }: Principal, figures: WindowFigures = UNKNOWN): void {
  res.setHeader('X-RateLimit-Limit-Requests', limits.rpm);
  res.setHeader('X-RateLimit-Remaining-Requests', remaining(limits.rpm, figures.requests));
  res.setHeader('X-RateLimit-Reset-Requests', resetSeconds(figures.requestsResetMs));
  res.setHeader('X-RateLimit-Limit-Tokens', limits.tpm);
  res.setHeader('X-RateLimit-Remaining-Tokens', remaining(limits.tpm, figures.tokens));
  res.setHeader('X-RateLimit-Reset-Tokens', resetSeconds(figures.tokensResetMs));
}

type AddressFigures = Pick<WindowFigures, 'requests' | 'requestsResetMs'>;

/** For a request without a valid key: the limit on failed authentications from its address. */
export function addressHeaders({ requests, requestsResetMs }: AddressFigures = UNKNOWN): Record<string, number> {
  return {
    'X-RateLimit-Limit-Requests': ADDRESS_FAILURES_PER_MINUTE,
    'X-RateLimit-Remaining-Requests': remaining(ADDRESS_FAILURES_PER_MINUTE, requests),
    'X-RateLimit-Reset-Requests': resetSeconds(requestsResetMs),
  };
}

export function setAddressHeaders(res: Response, figures?: AddressFigures): void {
  for (const [name, value] of Object.entries(addressHeaders(figures))) res.setHeader(name, value);
}
