import { describe, expect, it } from '@jest/globals';

import { ignoredFieldsHeader } from '../../../../api/chat/accept.ts';

describe('X-Ignored-Fields', () => {
  it('lists the names, percent-encoded, so that none can add a header or a name', () => {
    expect(ignoredFieldsHeader(['temperature', 'a,b', 'x\r\nSet-Cookie: y', 'größe'])).toBe(
      'temperature, a%2Cb, x%0D%0ASet-Cookie%3A%20y, gr%C3%B6%C3%9Fe',
    );
  });

  it('has at most 512 bytes and no half of a name', () => {
    const names = Array.from({ length: 100 }, (_, index) => `field-${String(index).padStart(3, '0')}`);

    const header = ignoredFieldsHeader(names);

    expect(header.length).toBeLessThanOrEqual(512);
    expect(header.split(', ')).toEqual(names.slice(0, 46));
  });

  it('is empty for no names and for one that is too long', () => {
    expect(ignoredFieldsHeader([])).toBe('');
    expect(ignoredFieldsHeader(['é'.repeat(200)])).toBe('');
  });

  it('names the fields behind one that is too long', () => {
    expect(ignoredFieldsHeader(['a', 'é'.repeat(200), 'temprature', 'x'.repeat(1_000_000), 'b'])).toBe(
      'a, temprature, b',
    );
  });

  it('X-Ignored-Fields bears a lone surrogate', () => {
    expect(ignoredFieldsHeader(['\ud800'])).toBe('%EF%BF%BD');
  });
});
