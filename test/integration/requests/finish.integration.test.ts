import { describe, expect, it } from '@jest/globals';

import { encodeEntry } from '../../../shared/contracts/events.ts';
import { waitUntil } from '../../support/chat.ts';
import { endingOf, openRequestLab, RETENTION_MS } from '../../support/request-lab.ts';
import type { AdmitOptions, LabRequest } from '../../support/request-lab.ts';
import { usedOf } from '../../support/use-window.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openRequestLab);

/** Admission holds 10 + 90 tokens. */
async function running(options: AdmitOptions = {}): Promise<LabRequest> {
  const request = await lab.admit({ maxTokens: 90, ...options });
  await lab.run(request, 1);
  return request;
}

const TOKENS = { prompt: 12, completion: 30 };

const lastHeard = ({ requestId }: LabRequest) =>
  lab.heard.filter((message) => message.startsWith(`${requestId} `)).at(-1);

describe('finishing with an answer', () => {
  it('finishing with an answer deletes the body and ends the lease', async () => {
    const request = await running();
    expect(await lab.redis.exists(lab.keys.body(request.requestId))).toBe(1);

    await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hello', TOKENS));

    expect(await lab.redis.exists(lab.keys.body(request.requestId))).toBe(0);
    expect(await lab.redis.zscore(lab.keys.inflight, request.requestId)).toBeNull();
  });

  it('stores and publishes the same last entry, kept for the retention', async () => {
    const request = await running();
    await lab.requests.append(request.ref(1), 2, ['He', 'l']);
    const ending = endingOf(request, 'lo', TOKENS);

    await lab.requests.finish(request.ref(1), 2, ending);

    // One more piece of text, the final chunk and [DONE].
    const payload = encodeEntry(['lo'], ending.terminal);
    await waitUntil(() => lastHeard(request)?.includes('finishReason') === true, 'the last entry');
    expect(lastHeard(request)).toBe(`${request.requestId} 5\n${payload}`);
    const stored = await lab.redis.xrange(lab.keys.stream(request.requestId), '-', '+');
    expect(stored.at(-1)).toEqual(['5-0', ['d', payload]]);
    for (const key of [lab.keys.stream(request.requestId), lab.keys.record(request.requestId)]) {
      const left = await lab.redis.pttl(key);
      expect(left).toBeGreaterThan(RETENTION_MS - 5_000);
      expect(left).toBeLessThanOrEqual(RETENTION_MS);
    }
  });

  it('leaves no window without an end where it had expired', async () => {
    const request = await running();
    const window = lab.keys.tokenWindow(request.principal.keyId);
    await lab.redis.del(window);
    await lab.redis.hset(lab.keys.record(request.requestId), 'acceptedAt', Date.now() - 200_000);

    await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hello', { prompt: 12, completion: 488 }));

    expect((await usedOf(lab.redis, window)).tokens).toBe(400);
    expect(await lab.redis.pttl(window)).toBeGreaterThan(60_000);
  });

  it('is refused for a request that nobody knows, and leaves no trace of it', async () => {
    const request = await running();
    await lab.redis.del(lab.keys.record(request.requestId));
    const before = await lab.snapshot();

    expect(await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hello', TOKENS))).toBe(false);

    expect(await lab.snapshot()).toEqual(before);
  });
});
