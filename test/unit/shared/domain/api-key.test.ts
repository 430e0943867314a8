import { createHash } from 'node:crypto';

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { allowsScope, createApiKey, hashApiKey, isApiKey } from '../../../../shared/domain/api-key.ts';

const RANDOM = 'abcdefghijklmnopqrstuvwxyz';
const { value: LIVE, hash, redactedValue } = createApiKey('svc', 'live', RANDOM);

describe('an API key', () => {
  it('has the form of the interface: prefix, kind and 32 base62 characters', () => {
    expect(LIVE).toMatch(/^svc_sk_live_[0-9A-Za-z]{32}$/);
    expect(createApiKey('svc', 'test', RANDOM).value).toMatch(/^svc_sk_test_[0-9A-Za-z]{32}$/);
  });

  it('is stored as a SHA-256 and shown as its last four characters', () => {
    expect(hash).toBe(createHash('sha256').update(LIVE).digest('hex'));
    expect(hashApiKey(LIVE)).toBe(hash);
    expect(redactedValue).toBe(`svc_sk_live_…${LIVE.slice(-4)}`);
  });

  it('an API key is accepted for any random part', () => {
    const random = fc.string({
      unit: fc.constantFrom(...Array.from(RANDOM), 'A', 'Z', '0', '9'),
      minLength: 26,
      maxLength: 26,
    });
    fc.assert(
      fc.property(random, fc.constantFrom('live' as const, 'test' as const), (part, mode) =>
        isApiKey(createApiKey('svc', mode, part).value, 'svc'),
      ),
    );
  });

  it('is refused when any one character is mistyped', () => {
    for (let index = 0; index < LIVE.length; index += 1) {
      const typo = LIVE.slice(0, index) + (LIVE[index] === 'q' ? 'p' : 'q') + LIVE.slice(index + 1);
      expect([typo, isApiKey(typo, 'svc')]).toEqual([typo, false]);
    }
  });

  it('is refused when it is a live key that says it is a test key', () => {
    expect(isApiKey(LIVE.replace('_live_', '_test_'), 'svc')).toBe(false);
  });

  it.each([
    ['empty', ''],
    ['cut', LIVE.slice(0, -1)],
    ['too long by one', `${LIVE}a`],
    ['of another prefix', createApiKey('abc', 'live', RANDOM).value],
    ['of a prefix that ours begins', createApiKey('svcx', 'live', RANDOM).value],
    ['of another kind', LIVE.replace('_live_', '_prod_')],
    ['in a line of its own', `${LIVE}\n`],
    ['very long', LIVE.repeat(10_000)],
    ['with characters outside base62', `svc_sk_live_${'é'.repeat(32)}`],
  ])('an API key is refused when it is %s', (_what, value) => {
    expect(isApiKey(value, 'svc')).toBe(false);
  });
});

describe('scopes', () => {
  it('scopes grant what they name, and * everything', () => {
    expect(allowsScope(['chat'], 'chat')).toBe(true);
    expect(allowsScope(['*'], 'compliance')).toBe(true);
    expect(allowsScope(['usage', 'chat.stream'], 'chat.stream')).toBe(true);
  });

  it('grant nothing by being part of another name', () => {
    expect(allowsScope(['chat'], 'chat.stream')).toBe(false);
    expect(allowsScope(['chat.stream'], 'chat')).toBe(false);
    expect(allowsScope([], 'chat')).toBe(false);
  });
});
