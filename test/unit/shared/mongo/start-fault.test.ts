import { expect, it } from '@jest/globals';

import { mongoServerFault } from '../../../../shared/mongo/faults.ts';

it.each([
  ['a member of a replica set', { setName: 'rs0', isWritablePrimary: true }, undefined],
  ['a router of a sharded cluster', { msg: 'isdbgrid' }, undefined],
  ['a server that runs alone', { isWritablePrimary: true }, expect.stringContaining('start it with --replSet NAME')],
])('%s is judged by what it says of itself', (_what, hello, fault) => {
  expect(mongoServerFault(hello)).toEqual(fault);
});
