import { ERRORS } from '../../shared/errors/codes.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import { id, named, object, oneOf, text } from './json-schema.ts';

// Object.keys loses the type of the table's names.
export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];

const codeSchema = named(
  'ErrorCode',
  oneOf(
    ERROR_CODES,
    ERROR_CODES.map((code) => `- \`${code}\` (${ERRORS[code].status}): ${ERRORS[code].meaning}`).join('\n'),
  ),
);

/** docs/spec.md#error-object. */
export const errorObjectSchema = named(
  'ErrorObject',
  object(
    {
      code: codeSchema,
      message: text('What to change, for people.'),
      type: oneOf([...new Set(Object.values(ERRORS).map(({ type }) => type))]),
      request_id: id('req', 'The same as the header `X-Request-Id`.'),
      param: text('The field or parameter at fault: `messages[3].content`.'),
      reason: text('A detail for programs: `in_flight`.'),
    },
    ['param', 'reason'],
  ),
);

export const errorSchema = named('Error', object({ error: errorObjectSchema }));
