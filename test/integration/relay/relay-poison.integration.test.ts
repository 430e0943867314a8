import { expect, it } from '@jest/globals';

import { chatOf, choiceOf, parseSse, textOf } from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import type { OpenStream } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ workers: 0, relayTimes: { pingMs: 50 } });

const shard = () => service.keyspace.shard(0);

/** Two streams that wait for their first event, on one subscription. */
async function openTwo(): Promise<OpenStream[]> {
  const { key } = await service.startTenant();
  return Promise.all(['One', 'Two'].map((content) => openStream(service.url, key, chatOf(content))));
}

/** As a worker writes entries: into the stream, and to whoever reads it. */
async function write(stream: OpenStream, ...entries: string[]): Promise<void> {
  const id = stream.requestId;
  for (const [index, entry] of entries.entries())
    await service.redis.xadd(shard().stream(id), `${index + 1}-0`, 'd', entry);
  const channels = (await service.redis.hget(shard().record(id), 'channels')) ?? '';
  const messages = entries.map((entry, index) => `${id} ${index + 1}\n${entry}`);
  await service.redis.publish(channels, messages.join('\x1e'));
}

const END = '{"finishReason":"stop","usage":{"promptTokens":1,"completionTokens":1}}';

it.each([
  ['has an error that this version does not know', '{"finishReason":"error","usage":{},"error":{"code":"later"}}'],
  ['is not JSON', '{"finishReason":'],
])('ends a stream alone whose end %s, with an error event', async (_what, end) => {
  const [broken, whole] = (await openTwo()) as [OpenStream, OpenStream];

  await write(broken, '"a"', end);
  const events = parseSse(await broken.end());
  await write(whole, '"b"');
  await service.redis.xadd(shard().stream(whole.requestId), '3-0', 'd', END);

  expect(textOf(events)).toBe('a');
  expect(choiceOf(events.at(-1)?.chunk).finish_reason).toBe('error');
  expect(events.at(-1)?.chunk).toMatchObject({ error: { code: 'internal_error', request_id: broken.requestId } });
  expect(events.map(({ id }) => id)).toEqual([1, 2]);
  expect(textOf(parseSse(await whole.end()))).toBe('b');
  expect(service.log.lines.filter(({ fields }) => fields.requestId === broken.requestId)).toContainEqual(
    expect.objectContaining({ level: 'error', message: 'An answer cannot be handed on; the client is told.' }),
  );
});
