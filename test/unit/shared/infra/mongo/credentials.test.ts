import { expect, it } from '@jest/globals';

import { createCredentialCipher } from '../../../../../shared/infra/mongo/credentials.ts';

const KEY = Buffer.alloc(32, 1);
const SECRET = 'sk-a-provider-key-äöü-🔑';

it('gives back what it was given', () => {
  const cipher = createCredentialCipher(KEY);

  for (const text of [SECRET, '', 'x'.repeat(10_000)]) expect(cipher.decrypt(cipher.encrypt(text))).toBe(text);
});

it('stores nothing that shows the secret, nor that two secrets are the same', () => {
  const cipher = createCredentialCipher(KEY);
  const [first, second] = [cipher.encrypt(SECRET), cipher.encrypt(SECRET)];

  expect(first).not.toBe(second);
  expect(Buffer.from(first, 'base64').toString('latin1')).not.toContain('provider-key');
});

it('refuses what another key has encrypted', () => {
  const encrypted = createCredentialCipher(KEY).encrypt(SECRET);

  expect(() => createCredentialCipher(Buffer.alloc(32, 2)).decrypt(encrypted)).toThrow();
});

it('refuses what was changed, anywhere', () => {
  const cipher = createCredentialCipher(KEY);
  const bytes = Buffer.from(cipher.encrypt(SECRET), 'base64');

  for (let index = 0; index < bytes.length; index += 1) {
    const changed = Buffer.from(bytes);
    changed[index] = (changed[index] ?? 0) ^ 1;
    expect(() => cipher.decrypt(changed.toString('base64'))).toThrow();
  }
});

it('refuses what is too short to be one of its texts', () => {
  const cipher = createCredentialCipher(KEY);

  for (const text of ['', 'c2hvcnQ=', Buffer.alloc(27).toString('base64')])
    expect(() => cipher.decrypt(text)).toThrow();
});
