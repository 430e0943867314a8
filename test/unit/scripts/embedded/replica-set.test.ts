import { describe, expect, it } from '@jest/globals';

import { planReplicaSet } from '../../../../scripts/embedded/initiate-replica-set.ts';

const HOST = '127.0.0.1:40001';
const configFor = (host: string) => ({ _id: 'parley', version: 3, members: [{ _id: 0, host }], settings: { x: 1 } });

describe('the replica set of an embedded mongod', () => {
  it('is initiated on a node without a configuration', () => {
    expect(planReplicaSet('parley', HOST, undefined)).toEqual({
      replSetInitiate: { _id: 'parley', members: [{ _id: 0, host: HOST }] },
    });
  });

  it('is left alone when the node has its port of the last start', () => {
    expect(planReplicaSet('parley', HOST, configFor(HOST))).toBeUndefined();
  });

  it('is reconfigured by force when the node has another port than at the last start', () => {
    expect(planReplicaSet('parley', HOST, configFor('127.0.0.1:5'))).toEqual({
      replSetReconfig: { _id: 'parley', version: 4, members: [{ _id: 0, host: HOST }], settings: { x: 1 } },
      force: true,
    });
  });
});
