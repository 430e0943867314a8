import { ServiceError } from '../../../shared/errors/service-error.ts';
import { defineAdminEndpoint, json, ok } from '../../contract/endpoint.ts';
import { constant, named, object, oneOf, text } from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { contextOf } from '../../http/request-context.ts';

const fields = {
  object: constant('admin_token'),
  name: text('As the audit log names it.'),
  role: oneOf(['read', 'write']),
};

const EXAMPLE = { object: 'admin_token', name: 'admin', role: 'write' } satisfies FieldsOf<typeof fields>;

/** What `GET /key` is for keys: the console asks which token it holds, and shows a read-only one nothing that writes. */
export const tokenEndpoint = {
  getAdminToken: defineAdminEndpoint({
    method: 'GET',
    path: '/token',
    tag: 'Credentials',
    summary: 'Retrieve the calling token',
    description: 'Its name and role; never its value.',
    answers: { 200: json('The token that the call was made with.', named('AdminToken', object(fields))) },
    examples: { own: { status: 200, answer: EXAMPLE } },
    handle({ res }) {
      const { administrator } = contextOf(res);
      if (administrator === undefined) throw new ServiceError('missing_api_key', 'No administrator token was sent.');
      const { name, role } = administrator;
      return ok({ object: 'admin_token', name, role });
    },
  }),
};
