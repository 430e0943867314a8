import Joi from 'joi';

import { partsOf } from './setting-rules.ts';

/** The role of a token's holder: `read` looks, `write` changes as well. */
export type AdminRole = 'read' | 'write';

/** A token of the administration. Two of one name overlap while one replaces the other. */
export interface AdminToken {
  /** The audit log names by it whoever changed something. */
  name: string;
  role: AdminRole;
  token: string;
}

/** `ADMIN_TOKEN` has no name of its own. */
const ADMIN_TOKEN_NAME = 'admin';

const TOKEN_CHARACTERS_MIN = 32;
/** 32 random hexadecimal digits have fewer with a chance of one in ten million. */
const DIFFERENT_CHARACTERS_MIN = 6;
const CREDENTIALS_KEY_BYTES = 32;

const TOKEN_ENTRY = /^([a-z0-9][a-z0-9_.-]{0,62}):(read|write):([\x21-\x2b\x2d-\x7e]+)$/;

function isStrong(token: string): boolean {
  const isVisible = /^[\x21-\x7e]+$/.test(token);
  return isVisible && token.length >= TOKEN_CHARACTERS_MIN && new Set(token).size >= DIFFERENT_CHARACTERS_MIN;
}

/** `openssl rand -hex 32` makes such a token. */
export const strongToken = Joi.string().custom((value: string, helpers) =>
  isStrong(value) ? value : helpers.error('token.weak'),
);

/** `name:role:token`, separated by commas. */
export const adminTokenList = Joi.string<AdminToken[]>().custom((value: string, helpers) => {
  const tokens: AdminToken[] = [];
  for (const part of partsOf(value)) {
    const [, name, role, token] = TOKEN_ENTRY.exec(part) ?? [];
    if (name === undefined || token === undefined) return helpers.error('token.entry');
    if (!isStrong(token)) return helpers.error('token.weak');
    tokens.push({ name, role: role === 'write' ? 'write' : 'read', token });
  }
  if (tokens.length === 0) return helpers.error('token.entry');
  return new Set(tokens.map(({ token }) => token)).size < tokens.length ? helpers.error('token.twice') : tokens;
});

function toKey(text: string): Buffer | undefined {
  const key = Buffer.from(text, 'base64');
  return key.length === CREDENTIALS_KEY_BYTES ? key : undefined;
}

export const base64Key = Joi.string<Buffer>().custom(
  (value: string, helpers) => toKey(value) ?? helpers.error('key.length'),
);

export const base64Keys = Joi.string<Buffer[]>().custom((value: string, helpers) => {
  const keys = partsOf(value).map(toKey);
  return keys.includes(undefined) ? helpers.error('key.length') : keys;
});

/** No sentence shows the value. */
export const SECRET_MESSAGES = {
  'token.weak': `{{#label}} must have at least ${TOKEN_CHARACTERS_MIN} characters, ${DIFFERENT_CHARACTERS_MIN} of them different, without spaces; make a token with: openssl rand -hex 32`,
  'token.entry': '{{#label}} must be a list of name:role:token, separated by commas, with the role read or write',
  'token.twice': '{{#label}} must not hold one token twice: nobody could tell who used it',
  'key.length': '{{#label}} must be 32 bytes in base64; make one with: openssl rand -base64 32',
};

export function adminTokensOf({
  token: single,
  tokens,
}: {
  token?: string;
  tokens: readonly AdminToken[];
}): AdminToken[] {
  const admin: AdminToken[] = single === undefined ? [] : [{ name: ADMIN_TOKEN_NAME, role: 'write', token: single }];
  return [...admin, ...tokens.filter(({ token }) => token !== single)];
}
