import { describe, expect, it } from '@jest/globals';

import { chatOf, ledgerOf, postChat } from '../../support/chat.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import { useService, useStarted } from '../../support/use-service.ts';

/** More than a function may have arguments. */
const PIECES = 200_000;

function chunkOf(delta: object, more: object = {}): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`;
}

describe('a complete answer that a provider sends in very many pieces', () => {
  const provider = useStarted('provider', startScriptedServer);
  // Its worker is started once it finds the provider.
  const service = useService({ workers: 0 });

  it('is answered whole, and charged', async () => {
    await service.setProvider({ kind: 'openai', base_url: provider.url, api_key: 'k' }, 'pieces');
    await service.setTargets('mobius', [{ provider: 'pieces', model: 'm', context_window: 128_000 }]);
    await service.startWorker();
    const usage = { prompt_tokens: 10, completion_tokens: 20 };
    provider.answer((res) => {
      res.setHeader('Content-Type', 'text/event-stream');
      res.write(chunkOf({ content: 'a' }).repeat(PIECES));
      res.end(`${chunkOf({}, { finish_reason: 'stop' })}data: ${JSON.stringify({ choices: [], usage })}\n\n`);
    });
    // So few credits that the answer is watched while it comes, piece by piece.
    const { key } = await service.startTenant({ credits: 250_000 });

    const response = await postChat(service.app, key, chatOf('Letters', { max_tokens: 16_384 }));

    expect(response.status).toBe(200);
    expect(response.body.choices[0].message.content).toHaveLength(PIECES);
    expect(await ledgerOf(service, response)).toMatchObject({ promptTokens: 10, completionTokens: 20 });
  });
});
