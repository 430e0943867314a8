import { describe, expect, it } from '@jest/globals';

import { withDatabase } from '../../../../scripts/harness/stores.ts';

describe('withDatabase', () => {
  it.each([
    ['mongodb://host:27017', 'mongodb://host:27017/bench'],
    ['mongodb://host:27017/live', 'mongodb://host:27017/bench'],
    ['mongodb://a:1,b:2/live?replicaSet=rs', 'mongodb://a:1,b:2/bench?replicaSet=rs'],
    ['mongodb://me:secret@host/live', 'mongodb://me:secret@host/bench?authSource=live'],
    ['mongodb://me:secret@host', 'mongodb://me:secret@host/bench?authSource=admin'],
    ['mongodb://me:secret@host/live?authSource=users', 'mongodb://me:secret@host/bench?authSource=users'],
    ['mongodb+srv://me:secret@host/live', 'mongodb+srv://me:secret@host/bench'],
  ])('never leads %s into the database that it names', (uri, expected) => {
    expect(withDatabase(uri, 'bench')).toBe(expected);
  });

  it('says what a URI looks like when it is none', () => {
    expect(() => withDatabase('localhost', 'bench')).toThrow(/MONGODB_URI must be a URI/);
  });
});
