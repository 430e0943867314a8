import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, errorOf, expectUncharged, ledgerOf, postChat, postStream, waitFor } from '../../support/chat.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';
import { useService } from '../../support/use-service.ts';

/** What a provider's own filter says of a prompt, in the dialects that say it with a status of another meaning. */
const REFUSALS: [string, number, object][] = [
  [
    'OpenRouter’s',
    403,
    {
      error: {
        code: 403,
        message: 'some/model requires moderation on OpenRouter. Your input was flagged for "violence".',
        metadata: { reasons: ['violence'], flagged_input: 'the prompt' },
      },
    },
  ],
  [
    'xAI’s',
    403,
    {
      code: 'The caller does not have permission to execute the specified operation',
      error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO',
    },
  ],
  ['DeepSeek’s', 400, { error: { message: 'Content Exists Risk', type: 'invalid_request_error' } }],
];

describe('a prompt that is refused in front of its model', () => {
  let server: ScriptedServer;
  let refusal: { status: number; body: object | string };
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    server = await startScriptedServer();
    server.answer((res) => {
      const { status, body } = refusal;
      res.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    await service.setProvider({ kind: 'openai', base_url: `${server.url}/v1` }, 'filtering');
    await service.setTargets('mobius', [
      { provider: 'filtering', model: 'm', priority: 1 },
      { provider: 'simulated', model: 'sim', priority: 2 },
    ]);
    await service.startWorker();
  });
  afterAll(async () => {
    expect(service.log.errors()).toEqual([]);
    await server.close();
  });

  async function breakerOf(provider: string) {
    const { body } = await service.admin('get', '/breakers');
    return (body.data as { id: string; recent_failures: number }[]).find(({ id }) => id === provider);
  }

  it.each(REFUSALS)(
    'by the provider’s own filter is the caller’s: nobody else is asked, and the provider serves on (%s)',
    async (_whose, status, body) => {
      refusal = { status, body };
      service.provider.reset();
      server.requests.length = 0;
      const { key, tenantId } = await service.startTenant({ credits: 10_000 });

      const answers = [
        await postChat(service.app, key, chatOf('Something')),
        await postStream(service.app, key, chatOf('Something')),
      ];

      for (const answer of answers) {
        expect(answer.status).toBe(400);
        expect(errorOf(answer)).toMatchObject({ code: 'content_policy_violation' });
      }
      expect(server.requests).toHaveLength(2);
      expect(service.provider.stats().calls).toBe(0);
      const breakers = (await service.admin('get', '/breakers')).body.data as { id: string }[];
      expect(breakers.find(({ id }) => id === 'filtering')).toMatchObject({ state: 'closed', recent_failures: 0 });
      await expectUncharged(service, tenantId, 10_000);
    },
  );

  it('by a firewall goes to the next target, and the provider serves on', async () => {
    refusal = { status: 403, body: '<html><title>Attention Required!</title></html>' };
    server.requests.length = 0;
    const { key } = await service.startTenant();

    const blocked = await postChat(service.app, key, chatOf('DELETE FROM a; DROP TABLE b;'));
    expect(blocked.status).toBe(200);
    expect(await ledgerOf(service, blocked)).toMatchObject({ provider: 'simulated' });
    const counted = await waitFor(async () => {
      const filtering = await breakerOf('filtering');
      return filtering?.recent_failures === 1 ? filtering : undefined;
    }, 'the failure to be counted');

    expect(counted).toMatchObject({ state: 'closed', recent_errors: { status_403: 1 } });
    expect(server.requests).toHaveLength(1);
  });
});
