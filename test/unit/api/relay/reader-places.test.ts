import { describe, expect, it } from '@jest/globals';

import { createReaderPlaces } from '../../../../api/relay/reader-places.ts';

const of = (keyId: string, tenantId = 'ten_1') => ({ tenantId, keyId });

describe('the places of readers', () => {
  it('are four a request, and each is given back once', () => {
    const places = createReaderPlaces();
    const [first] = ['key_1', 'key_2', 'key_3', 'key_4'].map((keyId) => places.enter('req_1', of(keyId)));
    expect(() => places.enter('req_1', of('key_5'))).toThrow('4 readers of one request');
    first?.();
    first?.();
    places.enter('req_1', of('key_1'));
    expect(() => places.enter('req_1', of('key_5'))).toThrow('4 readers of one request');
  });

  it('of a request are not filled by another tenant', () => {
    const places = createReaderPlaces();
    for (const keyId of ['key_1', 'key_2', 'key_3', 'key_4']) places.enter('req_1', of(keyId, 'ten_2'));

    expect(() => places.enter('req_1', of('key_5'))).not.toThrow();
  });

  it('are 200 a key, over all requests', () => {
    const places = createReaderPlaces();
    const leaves = Array.from({ length: 200 }, (_, index) => places.enter(`req_${index}`, of('key_1')));
    expect(() => places.enter('req_more', of('key_1'))).toThrow('limit of 200 resumed streams');
    places.enter('req_more', of('key_2'))();
    leaves[7]?.();
    places.enter('req_more', of('key_1'));
  });
});
