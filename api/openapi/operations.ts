import type { EndpointName } from '../contract/endpoints.ts';
import { auditLogOperations, auditLogSchemas } from '../resources/audit-log/operations.ts';
import { batchesOperations, batchSchemas } from '../resources/batches/operations.ts';
import { billingOperations, billingSchemas } from '../resources/billing/operations.ts';
import { chatRequestsOperations } from '../resources/chat-requests/operations.ts';
import { chatOperations } from '../resources/chat/operations.ts';
import { chatSchemas } from '../resources/chat/answer-schemas.ts';
import { complianceOperations, complianceSchemas } from '../resources/compliance/operations.ts';
import { entitiesOperations, entitySchemas } from '../resources/entities/operations.ts';
import { keySchemas, keysOperations } from '../resources/keys/operations.ts';
import { modelsOperations } from '../resources/models/operations.ts';
import { usageOperations, usageSchemas } from '../resources/usage/operations.ts';
import { webhookSchemas, webhooksOperations } from '../resources/webhooks/operations.ts';
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
