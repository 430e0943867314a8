import { listQuerySchema } from '../../../shared/contracts/list-page.ts';
import { exampleList } from '../../openapi/example-list.ts';
import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import { constant, object, pageSchema, ref, text, time } from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';

export const auditLogSchemas: Readonly<Record<string, JsonSchema>> = {
  AuditLogEntry: object({
    id: text(),
    object: constant('audit_log.entry'),
    created_at: time('When it was done'),
    actor: text('The id of the key, or `administrator`.'),
    action: text('What was done: `key.revoked`.'),
    target: text('The id of what it was done to.'),
    request_id: text('The request that did it.'),
    details: { type: 'object', description: 'What an auditor wants to know beside it.' },
  }),
  AuditLogList: pageSchema(ref('AuditLogEntry')),
};

const ENTRY = {
  id: 'aud_6tR8eW1qA3sD5fG7hJ9kL2zX',
  object: 'audit_log.entry',
  created_at: 1_795_255_200,
  actor: PATH_PARAMETERS.keyId.example,
  action: 'key.rotated',
  target: PATH_PARAMETERS.keyId.example,
  request_id: PATH_PARAMETERS.requestId.example,
  details: { grace_seconds: 3_600 },
};

/** What the document tells of `GET /compliance/audit_log`. */
export const auditLogOperations: OperationsOf<'listAuditLog'> = {
  listAuditLog: {
    tag: 'Compliance',
    summary: 'List who did what',
    description: 'To keys, entities, credits, webhooks and the tenant. Nothing is ever changed or deleted in it.',
    query: [listQuerySchema],
    answers: { 200: json('A page of entries.', ref('AuditLogList')) },
    examples: { newest: { query: { limit: 20 }, status: 200, answer: exampleList(ENTRY) } },
  },
};
