import { describe, expect, it } from '@jest/globals';

import { excessOf } from '../../../../../api/resources/keys/grant.ts';
import type { Grant } from '../../../../../api/resources/keys/grant.ts';

const grant = (more: Partial<Grant> = {}): Grant => ({
  mode: 'live',
  scopes: ['chat', 'keys'],
  expiresAt: 1_000,
  rpm: 60,
  tpm: 100,
  dailyRequests: 10,
  ...more,
});

describe('a grant', () => {
  it.each<[string, Partial<Grant>]>([
    ['the same', {}],
    ['fewer scopes', { scopes: ['chat'] }],
    ['an earlier end', { expiresAt: 999 }],
    ['lower limits', { rpm: 1, tpm: 1, dailyRequests: 1 }],
    ['a test key', { mode: 'test' }],
  ])('a grant takes in %s', (_what, more) => {
    expect(excessOf(grant(), grant(more))).toBeUndefined();
  });

  it.each<[string, Partial<Grant>]>([
    ['scopes', { scopes: ['usage'] }],
    ['scopes', { scopes: ['*'] }],
    ['expires_at', { expiresAt: 1_001 }],
    ['expires_at', { expiresAt: undefined }],
    ['rpm', { rpm: 61 }],
    ['rpm', { rpm: 0 }],
    ['tpm', { tpm: 101 }],
    ['daily_requests', { dailyRequests: 11 }],
    ['daily_requests', { dailyRequests: 0 }],
  ])('a grant does not take in more %s: %j', (part, more) => {
    expect(excessOf(grant(), grant(more))).toBe(part);
  });

  it('a grant of a test key takes in no live key', () => {
    expect(excessOf(grant({ mode: 'test' }), grant())).toBe('mode');
  });

  it('of everything takes in anything, `*` more than all scopes by name', () => {
    const all = grant({ scopes: ['*'], expiresAt: undefined, dailyRequests: 0 });
    expect(excessOf(all, grant({ scopes: ['*'], expiresAt: undefined, dailyRequests: 0 }))).toBeUndefined();
    expect(excessOf(grant({ scopes: ['chat'] }), grant({ scopes: ['*'] }))).toBe('scopes');
  });
});
