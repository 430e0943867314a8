import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';

/** A chat request that streams, without anything that a request may leave out. */
export function plainEnvelope(request: Partial<RequestEnvelope['request']> = {}): RequestEnvelope {
  return {
    requestId: 'req_1',
    tenantId: 'ten_1',
    keyId: 'key_1',
    mode: 'live',
    endpoint: 'chat.stream',
    tier: 'mobius',
    stream: true,
    acceptedAt: 0,
    retentionMs: 900_000,
    tenant: {},
    request: { messages: [{ role: 'user', content: 'Hi' }], maxTokens: 10, jsonMode: false, ...request },
  };
}
