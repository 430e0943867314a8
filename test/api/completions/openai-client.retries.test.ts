import { afterEach, describe, expect, it } from '@jest/globals';
import OpenAI from 'openai';
import request from 'supertest';

import { parseSse, waitFor, waitUntil } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

describe('what the official openai client tries again by itself', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  // As it is by default: two more tries.
  const clientFor = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${service.url}/platform/v1` });
  const hello = { model: 'mobius', messages: [{ role: 'user' as const, content: 'Hello' }] };

  it('is not a request that somebody has cancelled', async () => {
    service.provider.change({ first_token_ms: 60_000 });
    const { key } = await service.startTenant();
    const idempotent = { 'Idempotency-Key': 'once' };
    const accepted = await request(service.app)
      .post('/platform/v1/chat/completions')
      .auth(key, { type: 'bearer' })
      .set({ ...idempotent, Prefer: 'respond-async' })
      .send(hello);
    const id = String(accepted.body.id);
    await waitFor(() => Promise.resolve(service.provider.request(id)), 'the call of the provider');

    const joined = clientFor(key).chat.completions.create(hello, { headers: idempotent });
    const outcome = joined.then(
      () => 'an answer',
      (error: unknown) => error,
    );
    await waitUntil(async () => /^parley_open_relays\{.*\} 1$/m.test(await service.metrics()), 'its reader');
    await request(service.app).post(`/platform/v1/chat/${id}/cancel`).auth(key, { type: 'bearer' });

    expect(await outcome).toMatchObject({ status: 409, code: 'conflict' });
    expect(service.provider.stats().calls).toBe(1);
  });

  it('is not a stream that broke off and that its key stands for', async () => {
    service.provider.change({ fail: 'reset', fail_after: 2 });
    service.provider.reset();
    const { key } = await service.startTenant();
    const idempotent = { 'Idempotency-Key': 'broken' };
    const broken = await request(service.app)
      .post('/platform/v1/chat/completions')
      .auth(key, { type: 'bearer' })
      .set(idempotent)
      .send({ ...hello, stream: true });
    expect(parseSse(broken.text).at(-1)?.chunk).toHaveProperty('error.code', 'model_unavailable');

    const refused: unknown = await clientFor(key)
      .chat.completions.create(hello, { headers: idempotent })
      .catch((error: unknown) => error);

    expect(refused).toMatchObject({ status: 503, code: 'model_unavailable' });
    const { headers, message } = refused as InstanceType<typeof OpenAI.APIError>;
    expect(headers?.get('X-Should-Retry')).toBe('false');
    expect(message).toContain('send a new key');
    expect(service.provider.stats().calls).toBe(1);
  });

  it('is a call that timed out, whose request it joins: one generation, one charge', async () => {
    service.provider.change({ first_token_ms: 1_500 });
    service.provider.reset();
    const { key, tenantId } = await service.startTenant();
    const client = new OpenAI({ apiKey: key, baseURL: `${service.url}/platform/v1`, timeout: 1_000, maxRetries: 5 });

    const complete = await client.chat.completions.create(hello).withResponse();

    expect(complete.data.choices[0]?.message.content).not.toBe('');
    expect(complete.response.headers.get('Idempotent-Replayed')).toBe('true');
    expect(service.provider.stats().calls).toBe(1);

    let text = '';
    for await (const { choices } of await client.chat.completions.create({ ...hello, stream: true }))
      text += choices[0]?.delta.content ?? '';
    expect(text).not.toBe('');
    expect(service.provider.stats().calls).toBe(2);
    await waitFor(async () => {
      const booked = await service.models.ledger.countDocuments({ tenantId, type: 'usage' });
      return booked === 2 ? true : undefined;
    }, 'a charge of each');
  });

  it('is not a request that it could send again in hours only', async () => {
    const { key } = await service.startTenant({ tenant: { daily_requests: 1 } });
    await clientFor(key).chat.completions.create(hello);

    const refused: unknown = await clientFor(key)
      .chat.completions.create(hello)
      .catch((error: unknown) => error);

    expect(refused).toMatchObject({ status: 429, code: 'rpm_exceeded' });
    const { headers } = refused as InstanceType<typeof OpenAI.APIError>;
    expect(Number(headers?.get('Retry-After'))).toBeGreaterThan(86_000);
    expect(headers?.get('X-Should-Retry')).toBe('false');
  });

  it('is a request whose place comes within a minute', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 1 } });
    await clientFor(key).chat.completions.create(hello);

    const refused: unknown = await new OpenAI({
      apiKey: key,
      baseURL: `${service.url}/platform/v1`,
      maxRetries: 0,
    }).chat.completions
      .create(hello)
      .catch((error: unknown) => error);

    expect(refused).toMatchObject({ status: 429, code: 'rpm_exceeded' });
    expect((refused as InstanceType<typeof OpenAI.APIError>).headers?.has('X-Should-Retry')).toBe(false);
  });
});
