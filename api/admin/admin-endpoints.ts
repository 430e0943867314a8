import { adminAuditEndpoints } from './audit-log/admin-audit-endpoints.ts';
import type { AdminAuditLogDeps } from './audit-log/admin-audit-endpoints.ts';
import { breakersEndpoints } from './breakers/breakers-endpoints.ts';
import type { BreakersDeps } from './breakers/breakers-endpoints.ts';
import { credentialsEndpoints } from './credentials-endpoints.ts';
import type { CredentialsDeps } from './credentials-endpoints.ts';
import { creditsEndpoints } from './credits-endpoints.ts';
import type { CreditsDeps } from './credits-endpoints.ts';
import { packagesEndpoints } from './packages-endpoints.ts';
import type { PackagesDeps } from './packages-endpoints.ts';
import { processesEndpoints } from './processes-endpoints.ts';
import type { ProcessesDeps } from './processes-endpoints.ts';
import { settlementEndpoints } from './settlement-endpoints.ts';
import type { SettlementDeps } from './settlement-endpoints.ts';
import { adminUsageEndpoints } from './usage-endpoints.ts';
import type { AdminUsageDeps } from './usage-endpoints.ts';
import { tenantKeysEndpoints, tenantsEndpoints, tenantComplianceEndpoints } from './tenants/tenants-endpoints.ts';
import type { TenantsDeps, TenantComplianceDeps } from './tenants/tenants-endpoints.ts';
import type { KeysDeps } from '../resources/keys/keys-endpoints.ts';
import { providersEndpoints } from './providers/providers-endpoints.ts';
import type { ProvidersDeps } from './providers/providers-endpoints.ts';
import { queuesEndpoints } from './queues/queues-endpoints.ts';
import type { QueuesDeps } from './queues/queues-endpoints.ts';
import { requestLogEndpoints } from './requests/request-log-endpoints.ts';
import type { RequestLogDeps } from './requests/request-log-endpoints.ts';
import { requestsEndpoints } from './requests/requests-endpoints.ts';
import type { RequestsDeps } from './requests/requests-endpoints.ts';
import { publishedModelsEndpoints } from './tiers/models-endpoints.ts';
import type { PublishedModelsDeps } from './tiers/models-endpoints.ts';
import { tiersEndpoints } from './tiers/tiers-endpoints.ts';
import type { TiersDeps } from './tiers/tiers-endpoints.ts';

/** Every endpoint of the administration, by its operation id, in the order of the document. */
export const ADMIN_ENDPOINTS = {
  ...tenantsEndpoints,
  ...tenantComplianceEndpoints,
  ...tenantKeysEndpoints,
  ...creditsEndpoints,
  ...packagesEndpoints,
  ...adminUsageEndpoints,
  ...providersEndpoints,
  ...tiersEndpoints,
  ...publishedModelsEndpoints,
  ...breakersEndpoints,
  ...queuesEndpoints,
  ...processesEndpoints,
  // Before the requests by id: `replay` is none.
  ...requestsEndpoints,
  ...requestLogEndpoints,
  ...settlementEndpoints,
  ...adminAuditEndpoints,
  ...credentialsEndpoints,
};

export type AdminEndpointDeps = TenantsDeps &
  TenantComplianceDeps &
  KeysDeps &
  CreditsDeps &
  PackagesDeps &
  AdminUsageDeps &
  ProvidersDeps &
  TiersDeps &
  PublishedModelsDeps &
  BreakersDeps &
  QueuesDeps &
  ProcessesDeps &
  RequestLogDeps &
  RequestsDeps &
  SettlementDeps &
  AdminAuditLogDeps &
  CredentialsDeps;
