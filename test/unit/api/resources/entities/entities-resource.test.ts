import { expect, it } from '@jest/globals';

import { numberMessages } from '../../../../../api/resources/entities/entities-resource.ts';
import type { StoredMessage } from '../../../../../shared/mongo/entities/entity-repository.ts';

const message = (requestId: string, content: string): StoredMessage => ({
  role: 'user',
  content,
  requestId,
  seq: 1,
  attempt: 1,
});

it('a message keeps its id when older ones of its turn are forgotten', () => {
  const all = ['a', 'b', 'c'].map((text) => message('req_1', text)).concat(message('req_2', 'd'));
  const numbered = numberMessages(all);
  expect(new Set(numbered.map(({ id }) => id)).size).toBe(4);

  for (const kept of [3, 2, 1]) expect(numberMessages(all.slice(-kept))).toEqual(numbered.slice(-kept));
});
