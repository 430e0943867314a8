import { ADMIN_ENDPOINTS } from '../admin/admin-endpoints.ts';
import type { AdminEndpoint } from '../contract/endpoint.ts';
import { RESPONSE_HEADERS, UNIFORM_HEADERS } from '../contract/headers.ts';
import type { Api } from './describe-operation.ts';
import type { OpenApiDocument } from './document.ts';
import { describeApi } from './document.ts';
import { errorsOfAdminEndpoint } from './error-responses.ts';

const DESCRIPTION = `The administration of Parley, on a port of its own.

Every call needs a token of the administration: \`Authorization: Bearer <ADMIN_TOKEN>\`. A token with the role \`read\` may send GET only. After ten wrong tokens within a minute an address is kept out. Every answer has \`X-Request-Id\`. Every error has the same form, and its \`message\` says what to change.`;

export function createAdminDocument(): OpenApiDocument {
  const api: Api<AdminEndpoint> = {
    title: 'Parley administration',
    summary: 'Tenants, keys, credits, prices and routing.',
    description: DESCRIPTION,
    server: '/admin/v1',
    tags: {
      Tenants: 'Tenants, their limits and defaults.',
      Keys: 'API keys of any tenant.',
      Credits: 'Grants and adjustments.',
      Packages: 'The price list.',
      Usage: 'Usage, margin and ledgers, of one tenant or all.',
      Routing: 'Providers, tiers and circuit breakers.',
      Queues: 'What waits and runs.',
      Processes: 'Who runs, in which version.',
      Requests: 'What failed in an outage.',
      Settlement: 'What is finished and not booked yet.',
      'Audit log': 'Who changed what.',
      Credentials: 'The key that encrypts stored secrets.',
    },
    endpoints: ADMIN_ENDPOINTS,
    headers: { ...UNIFORM_HEADERS, ...RESPONSE_HEADERS },
    headersOfStatus: () => ['X-Request-Id'],
    errorsOf: errorsOfAdminEndpoint,
    isIdempotent: ({ isRemembered }) => isRemembered === true,
    securityOf: () => [{ AdminToken: [] }],
    securitySchemes: {
      AdminToken: {
        type: 'http',
        scheme: 'bearer',
        description: 'The value of `ADMIN_TOKEN`, or one of `ADMIN_TOKENS`.',
      },
    },
    otherPaths: {},
    webhooks: {},
  };
  return describeApi(api);
}
