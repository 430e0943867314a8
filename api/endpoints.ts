import { auditLogEndpoints } from './resources/audit-log-endpoints.ts';
import type { AuditLogDeps } from './resources/audit-log-endpoints.ts';
import { batchesEndpoints } from './resources/batches/batches-endpoints.ts';
import type { BatchesDeps } from './resources/batches/batches-endpoints.ts';
import { billingEndpoints } from './resources/billing/billing-endpoints.ts';
import type { BillingDeps } from './resources/billing/billing-endpoints.ts';
import { chatEndpoints } from './chat/chat-endpoints.ts';
import type { ChatDeps } from './chat/chat-endpoints.ts';
import { listChatRequests } from './chat/chat-request-list.ts';
import type { ChatRequestListDeps } from './chat/chat-request-list.ts';
import { chatRequestsEndpoints } from './chat/chat-requests-endpoints.ts';
import type { ChatRequestsDeps } from './chat/chat-requests-endpoints.ts';
import type { ResumeDeps } from './chat/resume.ts';
import type { ComplianceDeps } from './resources/compliance/compliance-jobs.ts';
import { deletionsEndpoints, exportsEndpoints } from './resources/compliance/compliance-endpoints.ts';
import { entitiesEndpoints } from './resources/entities/entities-endpoints.ts';
import type { EntitiesDeps } from './resources/entities/entities-endpoints.ts';
import { keysEndpoints } from './resources/keys/keys-endpoints.ts';
import type { KeysDeps } from './resources/keys/keys-endpoints.ts';
import { inputsEndpoints } from './chat/inputs-endpoints.ts';
import { modelsEndpoints } from './resources/models-endpoints.ts';
import type { ModelsDeps } from './resources/models-endpoints.ts';
import { usageEndpoints } from './resources/usage/usage-endpoints.ts';
import type { UsageDeps } from './resources/usage/usage-endpoints.ts';
import { webhooksEndpoints } from './resources/webhooks/webhooks-endpoints.ts';
import type { WebhooksDeps } from './resources/webhooks/webhook-settings.ts';

/** Every endpoint that takes an API key, by its operation id, in the order of the document. */
export const ENDPOINTS = {
  ...chatEndpoints,
  listChatRequests,
  ...chatRequestsEndpoints,
  ...inputsEndpoints,
  ...modelsEndpoints,
  ...batchesEndpoints,
  ...keysEndpoints,
  ...entitiesEndpoints,
  ...usageEndpoints,
  ...billingEndpoints,
  ...webhooksEndpoints,
  ...exportsEndpoints,
  ...deletionsEndpoints,
  ...auditLogEndpoints,
};

export type EndpointName = keyof typeof ENDPOINTS;

export type EndpointDeps = ChatDeps &
  ChatRequestsDeps &
  ChatRequestListDeps &
  ResumeDeps &
  ModelsDeps &
  BatchesDeps &
  KeysDeps &
  EntitiesDeps &
  UsageDeps &
  BillingDeps &
  WebhooksDeps &
  ComplianceDeps &
  AuditLogDeps;
