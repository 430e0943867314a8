import Joi from 'joi';

import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';

const POSITION = /^\d{1,15}$/;
const POSITION_RULE = '{{#label}} must be the number of an event: a whole number from 0';
const position = Joi.string()
  .pattern(POSITION)
  .meta({ reads: Joi.number().integer().min(0).max(999_999_999_999_999) })
  .messages({ 'string.base': POSITION_RULE, 'string.empty': POSITION_RULE, 'string.pattern.base': POSITION_RULE });

/** `GET /chat/stream/{request_id}`. */
export const resumeQuerySchema = Joi.object({
  starting_after: position.description('The number of the last event that the client has; or send `Last-Event-ID`.'),
}).unknown();

/** The other way to name it. */
const headerSchema = Joi.object({ 'Last-Event-ID': position });

/** The number of the last event that the client has; 0 where it names none. Throws `invalid_request`. */
export function parsePosition(query: Readonly<Record<string, unknown>>, header: string | undefined): number {
  const given = query['starting_after'];
  if (header !== undefined && given !== undefined) {
    throw new ServiceError('invalid_request', 'Send either the header Last-Event-ID or starting_after, not both.', {
      param: 'starting_after',
    });
  }
  if (header === undefined) checkAgainst(resumeQuerySchema, query);
  else checkAgainst(headerSchema, { 'Last-Event-ID': header });
  return Number(header ?? given ?? 0);
}
