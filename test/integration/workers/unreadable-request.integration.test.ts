import { expect, it } from '@jest/globals';

import { chatOf, errorOf, postChat, waitFor } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ workers: 0 });

it.each([
  ['is not JSON', '{"requestId":'],
  ['lacks its messages', JSON.stringify({ requestId: 'req_1', request: {} })],
])('ends a request whose stored body %s as internal_error, with nothing held, and goes on', async (_case, body) => {
  const { key, tenantId } = await service.startTenant();
  const { inflight, body: bodyKey } = service.keyspace.shard(0);
  const answer = postChat(service.app, key, chatOf('Hello')).then((response) => response);
  const requestId = await waitFor(async () => {
    const [id] = await service.redis.zrange(inflight, '0', '0');
    return id !== undefined && (await service.redis.exists(bodyKey(id))) === 1 ? id : undefined;
  }, 'the stored body');
  await service.redis.set(bodyKey(requestId), body, 'KEEPTTL');
  const worker = await service.startWorker();

  const response = await answer;

  expect(response.status).toBe(500);
  expect(errorOf(response)['code']).toBe('internal_error');
  expect(service.log.lines.some(({ message }) => message === 'A request cannot be read and is ended.')).toBe(true);
  expect((await service.admin('get', `/tenants/${tenantId}`)).body.held).toBe(0);
  expect((await postChat(service.app, key, chatOf('Hello again'))).status).toBe(200);
  await worker.close();
});
