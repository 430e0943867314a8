import type { Delivery } from '../../shared/requests/delivery-store.ts';
import type { Claimed, Lease } from '../../workers/pipeline/stage.ts';
import { plainEnvelope } from './plain-envelope.ts';

/** A lease that lasts and grants everything. */
export function idleLease(more: Partial<Lease> = {}): Lease {
  return {
    signal: new AbortController().signal,
    need: () => undefined,
    cover: () => Promise.resolve(true),
    granted: () => Infinity,
    grant: () => Promise.resolve(),
    payable: (usage) => Promise.resolve(usage),
    exhaust: () => undefined,
    check: () => Promise.resolve(),
    stop: () => undefined,
    release: () => undefined,
    ...more,
  };
}

/** The first delivery of a request, whose writes all succeed. */
export function idleDelivery(more: Partial<Delivery> = {}): Delivery {
  return {
    ...{ shard: 0, requestId: 'req_1', queue: 'interactive', fence: 1 },
    append: () => Promise.resolve('ok'),
    renew: () => Promise.resolve({ outcome: 'ok', held: { micro: Infinity, tokens: Infinity } }),
    finish: () => Promise.resolve(true),
    ...more,
  };
}

/** A request that was claimed, for a stage without stores. */
export function idleRun(more: Partial<Claimed> = {}): Claimed {
  return {
    interrupted: false,
    delivery: idleDelivery(),
    job: undefined,
    envelope: plainEnvelope(),
    seq: 1,
    claimedAt: 1_000,
    rates: { promptMicro: 1, completionMicro: 1 },
    onDisconnect: '',
    lease: idleLease(),
    answer: {
      text: '',
      unsent: [],
      asked: undefined,
      asks: [],
      promptTokens: 0,
      provider: '',
      model: '',
      trace: { attempts: [] },
    },
    ...more,
  };
}
