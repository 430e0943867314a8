import type { Scope } from '../../shared/domain/keys/api-key.ts';

/**
 * One public endpoint below `/platform/v1`. Guards, error answers and tests are made from this row, so a new endpoint
 * is a row here and a handler that a route hands to `serve` (api/http/serve-endpoints.ts).
 */
export interface EndpointRule {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As Express reads it: `:name` stands for one segment. */
  path: string;
  /** A key needs one of them; `any`: every valid key may call. */
  scopes: readonly Scope[] | 'any';
  /**
   * Which limit a call takes from: `request`: one of the key's rpm, taken by the middleware; `admission`: the same,
   * taken by the route's own admission; `lookup`: the limit of its own (docs/spec/contract.md section 3).
   */
  counts: 'request' | 'admission' | 'lookup';
  /**
   * `json`: a JSON body of at most 64 KiB; `optional-json`: the same, or none at all; `chat`: a JSON body of at most
   * 20 MiB; `batch`: JSON or NDJSON of at most 50 MiB; `own`: the route reads the body itself; `none`: a body is not
   * looked at.
   */
  body: 'json' | 'optional-json' | 'chat' | 'batch' | 'own' | 'none';
}

const CHAT = { method: 'POST', counts: 'admission', body: 'chat' } as const;
const READ = { method: 'GET', counts: 'request', body: 'none' } as const;
const DELETE = { method: 'DELETE', counts: 'request', body: 'none' } as const;
const WRITE = { counts: 'request', body: 'json' } as const;

/** Every endpoint that takes an API key. */
export const ENDPOINTS = {
  createChat: { ...CHAT, path: '/chat', scopes: ['chat'] },
  streamChat: { ...CHAT, path: '/chat/stream', scopes: ['chat.stream'] },
  createChatCompletion: { ...CHAT, path: '/chat/completions', scopes: ['chat', 'chat.stream'] },
  resumeChatStream: { ...READ, path: '/chat/stream/:requestId', scopes: ['chat.stream'], counts: 'lookup' },
  getChatRequest: { ...READ, path: '/chat/:requestId', scopes: ['chat', 'chat.stream'], counts: 'lookup' },
  cancelChatRequest: {
    method: 'POST',
    path: '/chat/:requestId/cancel',
    scopes: ['chat', 'chat.stream'],
    counts: 'lookup',
    body: 'none',
  },
  listModels: { ...READ, path: '/models', scopes: 'any' },

  createBatch: { ...WRITE, method: 'POST', path: '/batches', scopes: ['chat'], body: 'batch' },
  listBatches: { ...READ, path: '/batches', scopes: ['chat'] },
  getBatch: { ...READ, path: '/batches/:batchId', scopes: ['chat'] },
  cancelBatch: { ...WRITE, method: 'POST', path: '/batches/:batchId/cancel', scopes: ['chat'], body: 'none' },
  getBatchResults: { ...READ, path: '/batches/:batchId/results', scopes: ['chat'] },

  createKey: { ...WRITE, method: 'POST', path: '/keys', scopes: ['keys'] },
  listKeys: { ...READ, path: '/keys', scopes: ['keys'] },
  getKey: { ...READ, path: '/keys/:keyId', scopes: ['keys'] },
  updateKey: { ...WRITE, method: 'PATCH', path: '/keys/:keyId', scopes: ['keys'] },
  revokeKey: { ...DELETE, path: '/keys/:keyId', scopes: ['keys'] },
  rotateKey: { ...WRITE, method: 'POST', path: '/keys/:keyId/rotate', scopes: ['keys'], body: 'optional-json' },

  createEntity: { ...WRITE, method: 'POST', path: '/entities', scopes: ['entities'] },
  listEntities: { ...READ, path: '/entities', scopes: ['entities'] },
  putEntity: { ...WRITE, method: 'PUT', path: '/entities/:entityId', scopes: ['entities'] },
  getEntity: { ...READ, path: '/entities/:entityId', scopes: ['entities'] },
  updateEntity: { ...WRITE, method: 'PATCH', path: '/entities/:entityId', scopes: ['entities'] },
  deleteEntity: { ...DELETE, path: '/entities/:entityId', scopes: ['entities'] },
  getEntityHistory: { ...READ, path: '/entities/:entityId/history', scopes: ['entities'] },
  deleteEntityHistory: { ...DELETE, path: '/entities/:entityId/history', scopes: ['entities'] },

  getUsage: { ...READ, path: '/usage', scopes: ['usage'] },
  listUsageRequests: { ...READ, path: '/usage/requests', scopes: ['usage'] },

  getBilling: { ...READ, path: '/billing', scopes: ['billing'] },
  listBillingPackages: { ...READ, path: '/billing/packages', scopes: ['billing'] },
  createCheckout: { ...WRITE, method: 'POST', path: '/billing/checkout', scopes: ['billing'] },
  getCheckout: { ...READ, path: '/billing/checkout/:checkoutId', scopes: ['billing'] },
  listPurchases: { ...READ, path: '/billing/purchases', scopes: ['billing'] },
  listTransactions: { ...READ, path: '/billing/transactions', scopes: ['billing'] },

  createWebhook: { ...WRITE, method: 'POST', path: '/webhooks', scopes: ['webhooks'] },
  listWebhooks: { ...READ, path: '/webhooks', scopes: ['webhooks'] },
  getWebhook: { ...READ, path: '/webhooks/:webhookId', scopes: ['webhooks'] },
  updateWebhook: { ...WRITE, method: 'PATCH', path: '/webhooks/:webhookId', scopes: ['webhooks'] },
  deleteWebhook: { ...DELETE, path: '/webhooks/:webhookId', scopes: ['webhooks'] },
  rotateWebhookSecret: {
    ...WRITE,
    method: 'POST',
    path: '/webhooks/:webhookId/rotate_secret',
    scopes: ['webhooks'],
    body: 'optional-json',
  },
  testWebhook: { ...WRITE, method: 'POST', path: '/webhooks/:webhookId/test', scopes: ['webhooks'], body: 'none' },
  listDeliveries: { ...READ, path: '/webhooks/:webhookId/deliveries', scopes: ['webhooks'] },
  getDelivery: { ...READ, path: '/webhooks/:webhookId/deliveries/:deliveryId', scopes: ['webhooks'] },
  redeliver: {
    ...WRITE,
    method: 'POST',
    path: '/webhooks/:webhookId/deliveries/:deliveryId/redeliver',
    scopes: ['webhooks'],
    body: 'none',
  },

  createExport: { ...WRITE, method: 'POST', path: '/compliance/exports', scopes: ['compliance'] },
  listExports: { ...READ, path: '/compliance/exports', scopes: ['compliance'] },
  getExport: { ...READ, path: '/compliance/exports/:exportId', scopes: ['compliance'] },
  downloadExport: { ...READ, path: '/compliance/exports/:exportId/download', scopes: ['compliance'] },
  createDeletion: { ...WRITE, method: 'POST', path: '/compliance/deletions', scopes: ['compliance'] },
  listDeletions: { ...READ, path: '/compliance/deletions', scopes: ['compliance'] },
  getDeletion: { ...READ, path: '/compliance/deletions/:deletionId', scopes: ['compliance'] },
  listAuditLog: { ...READ, path: '/compliance/audit_log', scopes: ['compliance'] },
} as const satisfies Record<string, EndpointRule>;

export type EndpointName = keyof typeof ENDPOINTS;

type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamsOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** Every `:name` of the table's paths. */
export type PathParam = ParamsOf<(typeof ENDPOINTS)[EndpointName]['path']>;

/** The table's rows, as what they all are. */
export function endpointRule(name: EndpointName): EndpointRule {
  return ENDPOINTS[name];
}

/** The first segment of a path: an `Idempotency-Key` counts within it (docs/spec/contract.md section 3). */
export function familyOf({ path }: Pick<EndpointRule, 'path'>): string {
  return path.split('/')[1] ?? '';
}

/** The names of a path's parameters, in order. */
export function paramsOf(path: string): PathParam[] {
  // The table's own paths have no other names.
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name as PathParam);
}

/** The methods that a path answers. */
export function methodsOf(path: string): EndpointRule['method'][] {
  return Object.values<EndpointRule>(ENDPOINTS)
    .filter((rule) => rule.path === path)
    .map((rule) => rule.method);
}
