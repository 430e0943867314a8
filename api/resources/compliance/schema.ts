import Joi from 'joi';

import { codePoints, entityIdSchema } from '../../../shared/contracts/chat-request.ts';
import type { ComplianceScope } from '../../../shared/contracts/compliance.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';

const REASON_CHARACTERS_MAX = 500;

const subject = {
  scope: Joi.string().valid('tenant', 'entity').required().description('One entity, or everybody you have talked to.'),
  entity_id: entityIdSchema.description('With scope entity, and only then.'),
};

/** `POST /compliance/exports`. */
export const newExportSchema = Joi.object(subject).required();

/** `POST /compliance/deletions`. */
export const newDeletionSchema = Joi.object({
  ...subject,
  reason: Joi.string()
    .allow('')
    .custom(codePoints(REASON_CHARACTERS_MAX))
    .description('For your own records; it is shown with the deletion and nowhere else.'),
}).required();

/** Whom an export or a deletion is about. */
export interface Subject {
  scope: ComplianceScope;
  entityId?: string;
}

interface SubjectBody {
  scope: ComplianceScope;
  entity_id?: string;
}

function toSubject({ scope, entity_id: entityId }: SubjectBody): Subject {
  if (scope === 'entity' && entityId === undefined) {
    throw new ServiceError('invalid_request', '`entity_id` is required with scope entity.', { param: 'entity_id' });
  }
  if (scope === 'tenant' && entityId !== undefined) {
    throw new ServiceError('invalid_request', '`entity_id` must be left out with scope tenant.', {
      param: 'entity_id',
    });
  }
  return { scope, ...(entityId === undefined ? {} : { entityId }) };
}

/** Throws `invalid_request`. */
export function parseNewExport(input: unknown): Subject {
  checkAgainst(newExportSchema, input);
  // The schema has just checked every field of this shape.
  return toSubject(input as SubjectBody);
}

/** Throws `invalid_request`. */
export function parseNewDeletion(input: unknown): Subject & { reason?: string } {
  checkAgainst(newDeletionSchema, input);
  // As above.
  const body = input as SubjectBody & { reason?: string };
  return { ...toSubject(body), ...(body.reason === undefined ? {} : { reason: body.reason }) };
}
