import { afterEach, describe, expect, it } from '@jest/globals';

import { chatOf, choiceOf, parseSse, postChat, postStream, requestIdOf } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

interface Message {
  role: 'user' | 'assistant' | 'system';
  content: string;
}

const user = (content: string): Message => ({ role: 'user', content });
const assistant = (content: string): Message => ({ role: 'assistant', content });
const system = (content: string): Message => ({ role: 'system', content });

describe('the conversation of an entity', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  /** Sends messages for the entity `pupil`; returns what the provider got and what the caller got. */
  async function say(key: string, messages: Message[], more: object = {}) {
    const response = await postChat(service.app, key, { messages, entity_id: 'pupil', ...more });
    const requestId = requestIdOf(response);
    return { response, sent: messagesSent(requestId), reply: String(response.body.choices?.[0]?.message.content) };
  }

  function messagesSent(requestId: string): unknown {
    return service.provider.request(requestId)?.messages;
  }

  function stored(tenantId: string, entityId = 'pupil') {
    return service.models.entities.findOne({ tenantId, entityId }).lean();
  }

  it('reaches the provider in order, questions and answers', async () => {
    const { key } = await service.startTenant();

    const first = await say(key, [user('What is a river?')]);
    const second = await say(key, [user('And a lake?')]);
    const third = await say(key, [user('And a sea?')]);

    expect(first.sent).toEqual([user('What is a river?')]);
    expect(third.sent).toEqual([
      user('What is a river?'),
      assistant(first.reply),
      user('And a lake?'),
      assistant(second.reply),
      user('And a sea?'),
    ]);
  });

  it('holds a reply as soon as the caller has seen it, ten quick turns in a row, complete and streamed', async () => {
    const { key } = await service.startTenant();
    const said: Message[] = [];

    for (let turn = 0; turn < 10; turn += 1) {
      const question = user(`Question ${turn}`);
      const body = { messages: [question], entity_id: 'pupil', max_tokens: 8 };
      const response = await (turn % 2 === 0 ? postChat : postStream)(service.app, key, body);
      expect(messagesSent(requestIdOf(response))).toEqual([...said, question]);
      said.push(question, assistant(replyOf(response)));
    }
  });

  it('sends and stores once what the caller resends', async () => {
    const { key, tenantId } = await service.startTenant();
    const first = await say(key, [user('one')]);
    const copy = [user('one'), assistant(first.reply)];

    const second = await say(key, [...copy, user('two')]);

    expect(second.sent).toEqual([...copy, user('two')]);
    const row = await stored(tenantId);
    expect(row?.messages.map(({ content }) => content)).toEqual(['one', first.reply, 'two', second.reply]);
  });

  it('keeps the 50 most recent messages, and still knows a full copy of a longer conversation', async () => {
    const { key, tenantId } = await service.startTenant();
    service.provider.change({ text: 'Yes.' });
    const earlier = Array.from({ length: 26 }, (_, turn) => [user(`q${turn}`), assistant(`a${turn}`)]).flat();
    await say(key, [...earlier, user('last')]);
    const row = await stored(tenantId);
    expect(row?.messages.map(({ content }) => content)).toEqual(
      [...earlier.map(({ content }) => content), 'last', 'Yes.'].slice(-50),
    );

    const everything = [...earlier, user('last'), assistant('Yes.'), user('next')];
    const again = await say(key, everything);
    const onlyNew = await say(key, [user('one more')]);

    expect(again.sent).toEqual(everything);
    expect(onlyNew.sent).toEqual([...everything, assistant('Yes.')].slice(-50).concat(user('one more')));
  });

  it('does not keep system messages, but sends those of the request', async () => {
    const { key } = await service.startTenant();

    const first = await say(key, [system('Be brief.'), user('one')]);
    const second = await say(key, [system('Be kind.'), user('two')]);

    expect(first.sent).toEqual([system('Be brief.'), user('one')]);
    expect(second.sent).toEqual([user('one'), assistant(first.reply), system('Be kind.'), user('two')]);
  });

  it.each([
    ['failed', { fail: 'status', status: 404 } as const, 'Hello', 503],
    ['empty', { fail: 'empty' } as const, 'Hello', 200],
    ['cut off by moderation', { text: 'Well. This is a parley moderation test. ' } as const, 'Hello', 200],
    ['refused by moderation', {}, 'A parley moderation test.', 400],
  ])('the conversation of an entity keeps nothing of a turn that %s', async (_how, settings, content, status) => {
    const { key, tenantId } = await service.startTenant();
    service.provider.change(settings);

    const { response } = await say(key, [user(content)]);

    expect(response.status).toBe(status);
    expect((await stored(tenantId))?.messages ?? []).toEqual([]);
    service.provider.restore();
    expect((await say(key, [user('Next')])).sent).toEqual([user('Next')]);
  });

  it('the conversation of an entity keeps an answer that max_tokens has cut', async () => {
    const { key } = await service.startTenant();

    const first = await say(key, [user('one')], { max_tokens: 3 });

    expect(first.response.body.choices[0].finish_reason).toBe('length');
    expect((await say(key, [user('two')])).sent).toEqual([user('one'), assistant(first.reply), user('two')]);
  });

  it('is the tenant’s own: another tenant with the same entity_id does not see it', async () => {
    const [one, other] = [await service.startTenant(), await service.startTenant()];
    await say(one.key, [user('my secret')]);

    expect((await say(other.key, [user('What did I say?')])).sent).toEqual([user('What did I say?')]);
  });

  it('is not touched by a request without entity_id', async () => {
    const { key, tenantId } = await service.startTenant();
    await say(key, [user('one')]);

    const response = await postChat(service.app, key, chatOf('stateless'));

    expect(messagesSent(requestIdOf(response))).toEqual([user('stateless')]);
    expect((await stored(tenantId))?.messages).toHaveLength(2);
  });

  it('is shared by all keys of a tenant that have one mode', async () => {
    const { key, tenantId } = await service.startTenant();
    const keyOf = async (mode: string) =>
      String((await service.admin('post', `/tenants/${tenantId}/keys`, { name: 'second', mode })).body.value);
    const first = await say(key, [user('one')]);

    const second = await say(await keyOf('live'), [user('two')]);
    const test = await say(await keyOf('test'), [user('three')]);

    expect(second.sent).toEqual([user('one'), assistant(first.reply), user('two')]);
    expect(test.sent).toEqual([user('three')]);
  });

  it.each(['$where', '$$ROOT', '$messages', '{"$ne":null}', '.', '__proto__', '😀'.repeat(128)])(
    'the conversation of an entity takes any text for what it is: %s',
    async (text) => {
      const { key, tenantId } = await service.startTenant();
      service.provider.change({ text });

      await say(key, [user(text)], { entity_id: text });
      const { sent } = await say(key, [user('next')], { entity_id: text });

      expect(sent).toEqual([user(text), assistant(text), user('next')]);
      expect((await stored(tenantId, text))?.entityId).toBe(text);
    },
  );
});

function replyOf({ body }: { body: unknown }): string {
  if (typeof body !== 'string') {
    return (body as { choices: { message: { content: string } }[] }).choices[0]?.message.content ?? '';
  }
  return parseSse(body)
    .map(({ chunk }) => choiceOf(chunk).delta.content ?? '')
    .join('');
}
