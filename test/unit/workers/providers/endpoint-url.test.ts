import { expect, it } from '@jest/globals';

import { endpointUrl } from '../../../../workers/providers/post-to-provider.ts';

it.each([
  ['https://host/v1', 'https://host/v1/chat/completions'],
  ['https://host/v1//', 'https://host/v1/chat/completions'],
  [
    'https://n.openai.azure.com/openai/deployments/d?api-version=2024-10-21',
    'https://n.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21',
  ],
  ['https://host/d/?api-version=1', 'https://host/d/chat/completions?api-version=1'],
])('the endpoint of %s is %s', (baseUrl, expected) => {
  expect(endpointUrl(baseUrl, '/chat/completions')).toBe(expected);
});
