import type { EndpointName } from '../../shared/contracts/endpoints.ts';
import { auditLogOperations, auditLogSchemas } from '../routes/audit-log/operations.ts';
import { batchesOperations, batchSchemas } from '../routes/batches/operations.ts';
import { billingOperations, billingSchemas } from '../routes/billing/operations.ts';
import { chatRequestsOperations } from '../routes/chat-requests/operations.ts';
import { chatOperations } from '../routes/chat/operations.ts';
import { chatSchemas } from '../routes/chat/answer-schemas.ts';
import { complianceOperations, complianceSchemas } from '../routes/compliance/operations.ts';
import { entitiesOperations, entitySchemas } from '../routes/entities/operations.ts';
import { keySchemas, keysOperations } from '../routes/keys/operations.ts';
import { modelsOperations } from '../routes/models/operations.ts';
import { usageOperations, usageSchemas } from '../routes/usage/operations.ts';
import { webhookSchemas, webhooksOperations } from '../routes/webhooks/operations.ts';
import type { Operation } from './operation.ts';
import type { JsonSchema } from './schema.ts';

/** What the document tells of each endpoint: one that is missing does not compile. */
export const OPERATIONS: Readonly<Record<EndpointName, Operation>> = {
  ...chatOperations,
  ...chatRequestsOperations,
  ...modelsOperations,
  ...batchesOperations,
  ...keysOperations,
  ...entitiesOperations,
  ...usageOperations,
  ...billingOperations,
  ...webhooksOperations,
  ...complianceOperations,
  ...auditLogOperations,
};

/** Schemas of answers, by their names in the document. */
export const ANSWER_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...chatSchemas,
  ...batchSchemas,
  ...keySchemas,
  ...entitySchemas,
  ...usageSchemas,
  ...billingSchemas,
  ...webhookSchemas,
  ...complianceSchemas,
  ...auditLogSchemas,
};
