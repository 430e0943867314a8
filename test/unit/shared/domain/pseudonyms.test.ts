import { describe, expect, it } from '@jest/globals';

import { createPseudonyms } from '../../../../shared/domain/pseudonyms.ts';

const KEY = Buffer.alloc(32, 7);
const pseudonyms = createPseudonyms(KEY);

describe('a pseudonym', () => {
  it('is the same for the same entity, in every process', () => {
    expect(pseudonyms.of('ten_1', 'pupil')).toBe(createPseudonyms(KEY).of('ten_1', 'pupil'));
    expect(pseudonyms.of('ten_1', 'pupil')).toMatch(/^erased_[\w-]{30}$/);
  });

  it('is another one for another entity, another tenant and another key', () => {
    const names = [
      pseudonyms.of('ten_1', 'pupil'),
      pseudonyms.of('ten_1', 'pupil2'),
      pseudonyms.of('ten_2', 'pupil'),
      createPseudonyms(Buffer.alloc(32, 8)).of('ten_1', 'pupil'),
    ];
    expect(new Set(names).size).toBe(names.length);
  });

  it('is told from ids that callers have chosen to look like one', () => {
    const name = pseudonyms.of('ten_1', 'pupil');

    expect(pseudonyms.isOne('ten_1', name)).toBe(true);
    for (const text of ['', 'pupil', 'erased_', `${name}x`, name.slice(0, -1), `erased_${'A'.repeat(30)}`, `x${name}`])
      expect(pseudonyms.isOne('ten_1', text)).toBe(false);
    expect(pseudonyms.isOne('ten_2', name)).toBe(false);
  });
});
