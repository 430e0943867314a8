import type { CredentialRotation } from '../../shared/mongo/administration/rotate-credentials.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { defineAdminEndpoint, ok, json } from '../contract/endpoint.ts';
import { boolean, constant, integer, listOf, named, object, oneOf, text } from '../contract/json-schema.ts';
import type { FieldsOf } from '../contract/json-schema.ts';
import { contextOf } from '../http/request-context.ts';

export interface CredentialsDeps {
  credentials: CredentialRotation;
}

const keyFields = {
  id: text('A part of its hash; what it encrypts begins with `v1:` and this.'),
  current: boolean('It encrypts: `CREDENTIALS_KEY`. The others only decrypt: `CREDENTIALS_KEYS`.'),
  rows: integer('Providers, webhooks and secrets of the service that it has encrypted.', 0),
};
const fields = {
  object: constant('credentials'),
  keys: listOf(object(keyFields)),
  others: integer('Rows of earlier versions, which name no key, or of keys that the service does not have.', 0),
};
const EXAMPLE = {
  object: 'credentials',
  keys: [
    { id: '5f1c09ae', current: true, rows: 12 },
    { id: '77d02b41', current: false, rows: 0 },
  ],
  others: 0,
};

const getCredentials = defineAdminEndpoint({
  method: 'GET',
  path: '/credentials',
  tag: 'Credentials',
  summary: 'Count stored secrets by key',
  answers: { 200: json('How many rows each key has encrypted.', named('Credentials', object(fields))) },
  examples: { one: { status: 200, answer: EXAMPLE } },
  async handle(_call, { credentials }: CredentialsDeps) {
    const { current, keys, others } = await credentials.count();
    return ok({
      object: 'credentials',
      keys: keys.map(({ id, rows }) => ({ id, current: id === current, rows }) satisfies FieldsOf<typeof keyFields>),
      others,
    } satisfies FieldsOf<typeof fields>);
  },
});

const rotationFields = {
  object: constant('credentials.rotation'),
  rotated: integer('Rows that are encrypted with the current key from now on.', 0),
  remaining: integer('Rows that are not, because they changed meanwhile or cannot be decrypted; call again.', 0),
  unreadable: listOf(text(), 'The ids of rows that no key of the service decrypts.'),
};

const rotateCredentials = defineAdminEndpoint({
  method: 'POST',
  path: '/credentials/rotate',
  tag: 'Credentials',
  summary: 'Encrypt stored secrets with the current key',
  description: 'While everything runs; safe to repeat.',
  answers: { 200: json('What was encrypted again.', named('CredentialRotation', object(rotationFields))) },
  examples: {
    all: { status: 200, answer: { object: 'credentials.rotation', rotated: 12, remaining: 0, unreadable: [] } },
  },
  async handle(_call, { credentials }: CredentialsDeps) {
    const { rotated, remaining, unreadable } = await credentials.rotate();
    return ok({ object: 'credentials.rotation', rotated, remaining, unreadable } satisfies FieldsOf<
      typeof rotationFields
    >);
  },
});

const tokenFields = {
  object: constant('admin_token'),
  name: text('As the audit log names it.'),
  role: oneOf(['read', 'write']),
};

const TOKEN_EXAMPLE = { object: 'admin_token', name: 'admin', role: 'write' } satisfies FieldsOf<typeof tokenFields>;

/** Like `GET /key` for keys: the console asks which token it holds, and shows a read-only one nothing that writes. */
const getAdminToken = defineAdminEndpoint({
  method: 'GET',
  path: '/token',
  tag: 'Credentials',
  summary: 'Retrieve the calling token',
  description: 'Its name and role; never its value.',
  answers: { 200: json('The token that the call was made with.', named('AdminToken', object(tokenFields))) },
  examples: { own: { status: 200, answer: TOKEN_EXAMPLE } },
  handle({ res }) {
    const { administrator } = contextOf(res);
    if (administrator === undefined) throw new ServiceError('missing_api_key', 'No administrator token was sent.');
    const { name, role } = administrator;
    return ok({ object: 'admin_token', name, role });
  },
});

/** The key that encrypts stored secrets (docs/spec.md#credentials-key). */
export const credentialsEndpoints = { getAdminToken, getCredentials, rotateCredentials };
