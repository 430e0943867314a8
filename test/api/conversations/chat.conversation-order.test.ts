import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { postChat, requestIdOf, waitUntil } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

const user = (content: string) => ({ role: 'user', content });

/** `mobius` answers after 400 ms, `oloid` at once. */
describe('turns of one entity at the same time', () => {
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    await service.setTargets('mobius', [{ provider: 'simulated', model: 'slow?first_token_ms=400&text=slow' }]);
    await service.setTargets('oloid', [{ provider: 'simulated', model: 'fast?text=fast' }]);
    await service.startWorker();
    await service.startWorker();
  });
  afterAll(() => {
    expect(service.log.errors()).toEqual([]);
  });

  const turn = (content: string, model: string) => ({ messages: [user(content)], entity_id: 'pupil', model });

  async function stored(tenantId: string) {
    const row = await service.models.entities.findOne({ tenantId, entityId: 'pupil' }).lean();
    return row?.messages ?? [];
  }

  it('are both kept, in the order in which they were accepted, not that in which they ended', async () => {
    const { key, tenantId } = await service.startTenant();
    const before = service.provider.stats().calls;
    const slow = postChat(service.app, key, turn('first', 'mobius')).then((response) => response);
    await waitUntil(() => service.provider.stats().calls > before, 'the first call');

    await postChat(service.app, key, turn('second', 'oloid'));
    expect((await stored(tenantId)).map(({ content }) => content)).toEqual(['second', 'fast']);
    await slow;

    expect((await stored(tenantId)).map(({ content }) => content)).toEqual(['first', 'slow', 'second', 'fast']);
    const next = await postChat(service.app, key, turn('third', 'oloid'));
    expect(service.provider.request(requestIdOf(next))?.messages).toMatchObject([
      { content: 'first' },
      { content: 'slow' },
      { content: 'second' },
      { content: 'fast' },
      { content: 'third' },
    ]);
  });

  it('are all kept when they are the first of an unknown entity, each question with its answer', async () => {
    const { key, tenantId } = await service.startTenant();
    const questions = Array.from({ length: 12 }, (_, index) => `question ${index}`);

    const responses = await Promise.all(
      questions.map((question) => postChat(service.app, key, turn(question, 'oloid'))),
    );

    expect(responses.map(({ status }) => status)).toEqual(questions.map(() => 200));
    const messages = await stored(tenantId);
    expect(messages).toHaveLength(24);
    expect(messages.map(({ role }) => role)).toEqual(questions.flatMap(() => ['user', 'assistant']));
    expect(new Set(messages.map(({ content }) => content))).toEqual(new Set([...questions, 'fast']));
    const order = messages.map(({ seq }) => seq);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(await service.models.entities.countDocuments({ tenantId })).toBe(1);
  });
});
