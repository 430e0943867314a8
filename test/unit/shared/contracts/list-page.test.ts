import { describe, expect, it } from '@jest/globals';

import { pageOf, parseListQuery, toListPage } from '../../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';

function paramOf(query: Record<string, unknown>): string | undefined {
  try {
    parseListQuery(query);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'invalid_request') return error.param;
    throw error;
  }
  return undefined;
}

describe('the query of a list', () => {
  it('the query of a list asks for the 20 newest by default', () => {
    expect(parseListQuery({})).toEqual({ limit: 20, order: 'desc' });
  });

  it('takes limits from 1 to 100, a cursor and an order', () => {
    expect(parseListQuery({ limit: '1' })).toMatchObject({ limit: 1 });
    expect(parseListQuery({ limit: '100', after: 'key_1', order: 'asc' })).toEqual({
      limit: 100,
      after: 'key_1',
      order: 'asc',
    });
  });

  it('the query of a list names the parameter that is wrong', () => {
    for (const limit of ['0', '101', '1.5', '-1', '', '1e1', ' 5', ['5', '6'], {}]) {
      expect(paramOf({ limit })).toBe('limit');
    }
    for (const order of ['', 'DESC', ['asc'], {}]) expect(paramOf({ order })).toBe('order');
    for (const after of ['', 'a\0b', 'x'.repeat(257), ['a', 'b'], {}]) expect(paramOf({ after })).toBe('after');
  });
});

describe('a page', () => {
  const rows = ['a', 'b', 'c', 'd', 'e'];
  const toResource = (id: string) => ({ id });
  const read = (limit: number, order: 'asc' | 'desc', after?: string) =>
    toListPage(
      pageOf(rows, { limit, order, ...(after === undefined ? {} : { after }) }, (row) => row),
      limit,
      toResource,
    );

  it('a page says whether there are more', () => {
    expect(read(2, 'asc')).toEqual({
      object: 'list',
      data: [{ id: 'a' }, { id: 'b' }],
      has_more: true,
      first_id: 'a',
      last_id: 'b',
    });
    expect(read(5, 'asc').has_more).toBe(false);
  });

  it('goes on after the last row of the page before, in both orders', () => {
    expect(read(2, 'asc', 'b')).toMatchObject({ first_id: 'c', last_id: 'd', has_more: true });
    expect(read(2, 'desc', 'b')).toMatchObject({ first_id: 'a', last_id: 'a', has_more: false });
  });

  it('a page past the end is empty', () => {
    expect(read(2, 'asc', 'e')).toEqual({ object: 'list', data: [], has_more: false, first_id: null, last_id: null });
  });

  it('after an id that is not in the list is refused', () => {
    expect(() => read(2, 'asc', 'z')).toThrow(ServiceError);
  });
});
