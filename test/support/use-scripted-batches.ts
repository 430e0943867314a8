import { beforeAll } from '@jest/globals';

import { createBatchLab } from './batch-lab.ts';
import type { BatchLab } from './batch-lab.ts';
import { lazily } from './lazily.ts';
import type { Started } from './lazily.ts';
import { startScriptedServer } from './scripted-server.ts';
import { useService, useStarted } from './use-service.ts';

export const SCRIPTED_ANSWER = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
});

/** Batches whose provider answers as a test says, and is asked once for each try (see use-service.ts). */
export function useScriptedBatches() {
  const lab: Started<BatchLab> = { value: undefined };
  const server = useStarted('server', startScriptedServer);
  const service = useService({ workers: 0 });
  /** `more`: of the provider's settings. */
  const setProvider = (more: object = {}) =>
    service.setProvider({ kind: 'openai', base_url: server.url, api_key: 'k', max_retries: 0, ...more }, 'scripted');
  beforeAll(async () => {
    lab.value = createBatchLab(service);
    await setProvider();
    await service.setTargets('mobius', [{ provider: 'scripted', model: 'any', context_window: 128_000 }]);
    await service.startWorker();
  });
  return { server, service, setProvider, lab: lazily(lab, 'lab') };
}
