import { createCipheriv } from 'node:crypto';

import { expect, it } from '@jest/globals';

import { createCredentialCipher } from '../../../../shared/mongo/credentials.ts';

const KEY = Buffer.alloc(32, 1);
const OTHER = Buffer.alloc(32, 2);
const PLACE = 'providers/openai';
const SECRET = 'sk-a-provider-key-äöü-🔑';

it('gives back what it was given', () => {
  const cipher = createCredentialCipher(KEY);

  for (const text of [SECRET, '', 'x'.repeat(10_000)])
    expect(cipher.decrypt(cipher.encrypt(text, PLACE), PLACE)).toBe(text);
});

it('stores nothing that shows the secret, nor that two secrets are the same', () => {
  const cipher = createCredentialCipher(KEY);
  const [first, second] = [cipher.encrypt(SECRET, PLACE), cipher.encrypt(SECRET, PLACE)];

  expect(first).not.toBe(second);
  expect(Buffer.from(first.slice(first.lastIndexOf(':') + 1), 'base64').toString('latin1')).not.toContain(
    'provider-key',
  );
});

it('refuses what another key has encrypted', () => {
  const encrypted = createCredentialCipher(KEY).encrypt(SECRET, PLACE);

  expect(() => createCredentialCipher(Buffer.alloc(32, 2)).decrypt(encrypted, PLACE)).toThrow();
});

it('refuses what was changed, anywhere, and what was taken from another row', () => {
  const cipher = createCredentialCipher(KEY);
  const encrypted = cipher.encrypt(SECRET, PLACE);
  const start = encrypted.lastIndexOf(':') + 1;
  const bytes = Buffer.from(encrypted.slice(start), 'base64');

  for (let index = 0; index < bytes.length; index += 1) {
    const changed = Buffer.from(bytes);
    changed[index] = (changed[index] ?? 0) ^ 1;
    const text = changed.toString('base64');
    expect(() => cipher.decrypt(`${encrypted.slice(0, start)}${text}`, PLACE)).toThrow();
    expect(() => cipher.decrypt(text, PLACE)).toThrow();
  }
  expect(() => cipher.decrypt(encrypted, 'providers/attacker')).toThrow();
});

it('reads what its other keys have encrypted, and writes with the first', () => {
  const [old, swapped] = [createCredentialCipher(KEY), createCredentialCipher(OTHER, [KEY])];

  expect(swapped.decrypt(old.encrypt(SECRET, PLACE), PLACE)).toBe(SECRET);
  expect(swapped.encrypt(SECRET, PLACE)).toContain(`v1:${swapped.keyIds[0]}:`);
  expect(swapped.keyIds).toEqual([createCredentialCipher(OTHER).keyIds[0], old.keyIds[0]]);
});

it('reads texts of versions that named neither key nor row', () => {
  const cipher = createCipheriv('aes-256-gcm', KEY, Buffer.alloc(12, 3));
  const data = Buffer.concat([cipher.update(SECRET, 'utf8'), cipher.final()]);
  const text = Buffer.concat([Buffer.alloc(12, 3), cipher.getAuthTag(), data]).toString('base64');

  for (const reader of [createCredentialCipher(KEY), createCredentialCipher(OTHER, [KEY])])
    expect(reader.decrypt(text, PLACE)).toBe(SECRET);
  expect(() => createCredentialCipher(OTHER).decrypt(text, PLACE)).toThrow();
});

it('refuses what is too short to be one of its texts', () => {
  const cipher = createCredentialCipher(KEY);

  for (const text of ['', 'c2hvcnQ=', Buffer.alloc(27).toString('base64')])
    expect(() => cipher.decrypt(text, PLACE)).toThrow();
});
