import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';

import { ENDPOINTS } from '../../../../api/endpoints.ts';
import { createWrongPath } from '../../../../api/http/wrong-path.ts';

const handle = createWrongPath(Object.values(ENDPOINTS));

function adviceFor(method: string, path: string): string {
  try {
    void handle({ method, path } as Request, {} as Response, () => undefined);
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  return '';
}

const CHAT = 'use POST /platform/v1/chat/completions.';

describe('a path at which there is nothing', () => {
  it.each([
    ['POST', '/chat/completions', `the API is under /platform/v1: ${CHAT}`],
    ['POST', '/v1/chat/completions', `the API is under /platform/v1: ${CHAT}`],
    ['POST', '/platform/v1/v1/chat/completions', `the API is under /platform/v1: ${CHAT}`],
    ['POST', '/platform/v1/chat/completions/chat/completions', `the API is under /platform/v1: ${CHAT}`],
    ['POST', '/openai/deployments/gpt-4/chat/completions', `the API is under /platform/v1: ${CHAT}`],
    ['GET', '/v1/models', 'the API is under /platform/v1: use GET /platform/v1/models.'],
    ['GET', '/platform/v1/chat/completions/models', 'use GET /platform/v1/models.'],
    ['GET', '/v1/models/mobius', 'use GET /platform/v1/models/mobius.'],
    ['POST', '/chat', 'use POST /platform/v1/chat.'],
    ['POST', '/v1/chat/stream', 'use POST /platform/v1/chat/stream.'],
    ['POST', '/platform/v1/responses', `this service has no such API: ${CHAT}`],
    ['POST', '/platform/v1/chat/completions/responses', `this service has no such API: ${CHAT}`],
    ['POST', '/platform/v1/completions', `this service has no such API: ${CHAT}`],
    ['POST', '/platform/v1/messages', `this service has no such API: ${CHAT}`],
    ['POST', '/v1/messages', `this service has no such API: ${CHAT}`],
    ['POST', '/api/chat', `this service has no such API: ${CHAT}`],
    ['POST', '/v1/embeddings', 'the API is under /platform/v1: use POST /platform/v1/embeddings.'],
    ['POST', '/v1/images/generations', `this service has chat and embeddings only: ${CHAT}`],
    ['POST', '/platform/v1/files', 'POST /platform/v1/batches takes the requests of a batch themselves.'],
    ['GET', '/platform/v1/nothing', '/docs lists what there is.'],
    ['GET', '/favicon.ico', 'the API is under /platform/v1, its pages under /docs.'],
  ])('is named, with what to use: %s %s', (method, path, advice) => {
    const message = adviceFor(method, path);

    expect(message.startsWith(`There is nothing at ${method} ${path}; `)).toBe(true);
    expect(message).toContain(advice);
  });

  it('is cut where it is very long', () => {
    expect(adviceFor('GET', `/${'x/'.repeat(5_000)}`).length).toBeLessThan(400);
  });
});
