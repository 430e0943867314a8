import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, errorOf, expectUncharged, postChat } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';
import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';

/** Harmless, and always flagged: it is there for tests. */
const FLAGGED = 'parley moderation test';
const HELLO = 'Explain the thing named in the subject, step by step.';

type Neighbours = { role: string; content: string }[];

const user = (content: string) => ({ role: 'user', content });
const system = (content: string) => ({ role: 'system', content });

const NEIGHBOURS: [string, Neighbours][] = [
  ['neighbours of one role', [user('This is a parley'), user('moderation test')]],
  ['system messages that are apart', [system('parley moderation'), user('Hello'), system('test')]],
  ['an empty line', [user('This is a parley\n\nmoderation test')]],
  ['invisible characters', [user('par\u200bley mod\u00aderation\u2060 te\u{e0041}st')]],
];

describe.each(['local', 'openai'])('content moderation by the backend %s reads all that a model reads:', (backend) => {
  const endpoint = createSimulatedProvider();
  const service = useService(async () => {
    if (backend === 'local') return {};
    const { url } = await endpoint.listen();
    return { env: { MODERATION_BACKEND: 'openai', MODERATION_BASE_URL: `${url}/v1` } };
  });
  afterAll(() => endpoint.close());
  afterEach(() => {
    service.provider.reset();
  });

  async function expectRefused(key: string, body: object): Promise<Record<string, unknown>> {
    service.provider.reset();
    const response = await postChat(service.app, key, body);
    expect(response.status).toBe(400);
    expect(service.provider.stats().calls).toBe(0);
    return errorOf(response);
  }

  it.each(NEIGHBOURS)('%s', async (_, messages) => {
    const { key } = await service.startTenant();

    const error = await expectRefused(key, { messages });

    expect(error).toMatchObject({ code: 'content_policy_violation' });
    expect(error['param'] ?? null).toBeNull();
  });

  it.each(['subject', 'grade'])('the %s of a request', async (field) => {
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const error = await expectRefused(key, chatOf(HELLO, { [field]: `This is a ${FLAGGED}` }));

    expect(error).toMatchObject({ code: 'content_policy_violation', param: field });
    expect(error['message']).toBe(`The ${field} was flagged by content moderation (test); change it and try again.`);
    await expectUncharged(service, tenantId, 10_000);
  });

  it.each(['subject', 'grade'])('the %s of an entity', async (field) => {
    const { key } = await service.startTenant({ key: { scopes: ['*'] } });
    await request(service.app)
      .put('/platform/v1/entities/pupil')
      .auth(key, { type: 'bearer' })
      .send({ subject: 'Physics', grade: '7', [field]: `This is a ${FLAGGED}` })
      .expect(({ status }) => status < 300);

    const error = await expectRefused(key, chatOf(HELLO, { entity_id: 'pupil' }));
    expect(error).toMatchObject({ code: 'content_policy_violation', param: field });
    expect(error['message']).toContain(`The entity's ${field} was flagged`);

    // A request's own value takes its place, so the model does not read it.
    expect((await postChat(service.app, key, chatOf(HELLO, { entity_id: 'pupil', [field]: 'Art' }))).status).toBe(200);
  });

  it('the values of the tenant', async () => {
    const { key } = await service.startTenant({ tenant: { subject: `This is a ${FLAGGED}` } });

    const error = await expectRefused(key, chatOf(HELLO));

    expect(error).toMatchObject({ code: 'content_policy_violation', param: 'subject' });
    expect(error['message']).toContain("The tenant's subject was flagged");
  });

  it('names the messages where they are at fault and the subject is not', async () => {
    const { key } = await service.startTenant();

    const error = await expectRefused(key, chatOf(FLAGGED, { subject: 'Physics' }));

    expect(error['message']).toContain('The messages were flagged');
    expect(error['param'] ?? null).toBeNull();
  });

  it('a stored message and its neighbour of the next request', async () => {
    const { key } = await service.startTenant();
    service.provider.change({ text: 'This is a parley moderation' });
    expect((await postChat(service.app, key, chatOf('Say it', { entity_id: 'pupil' }))).status).toBe(200);

    await expectRefused(key, { messages: [{ role: 'assistant', content: 'test' }, user('Go on')], entity_id: 'pupil' });
    service.provider.restore();
  });
});
