/**
 * The most that one request may ask of the stores and of its provider: a regression fails the build on any machine.
 *
 * Each bound is a counted figure, with room for what depends on timing: how many requests share a fetch of jobs, a write or
 * a settlement. `SHOW_COUNTS=1 npm test -- test/integration/budget` prints the counts; lower a bound when its count falls.
 */
export interface Budget {
  /** Commands that a process sends to Redis; a script is one, whatever it runs. */
  redisCalls: number;
  /** Commands that Redis runs, those inside scripts included. */
  redisCommands: number;
  /** What Redis receives, and what it sends. */
  redisBytesIn: number;
  redisBytesOut: number;
  /** Settlement included, heartbeats left out. */
  mongoOperations: number;
  providerCalls: number;
}

export interface BudgetCase {
  stream: boolean;
  /** Requests at once. */
  clients: number;
  requests: number;
  /** Of the simulated provider. */
  model: string;
}

const ONE = { clients: 1, requests: 30 };
const MANY = { clients: 32, requests: 256 };
const COMPLETE = { stream: false, model: 'sim?chunks=40' };
/** Forty chunks, as fast as the provider can. */
const STREAM = { stream: true, model: 'sim?chunks=40' };
/** Forty chunks, one each 10 ms. */
const LIVE = { stream: true, model: 'sim?chunks=40&chunk_ms=10' };

export const BUDGETS: Readonly<Record<string, BudgetCase & { budget: Budget }>> = {
  'complete, one at a time': {
    ...{ ...COMPLETE, ...ONE },
    budget: {
      ...{ redisCalls: 5.3, redisCommands: 64, redisBytesIn: 7_500, redisBytesOut: 3_300 },
      ...{ mongoOperations: 4, providerCalls: 1 },
    },
  },
  'complete, 32 at once': {
    ...{ ...COMPLETE, ...MANY },
    budget: {
      ...{ redisCalls: 3, redisCommands: 58, redisBytesIn: 5_600, redisBytesOut: 3_100 },
      ...{ mongoOperations: 0.3, providerCalls: 1 },
    },
  },
  'stream of 40 chunks, one at a time': {
    ...{ ...STREAM, ...ONE },
    // The text comes with its end, so that both are one call.
    budget: {
      ...{ redisCalls: 5.8, redisCommands: 68, redisBytesIn: 7_500, redisBytesOut: 3_400 },
      ...{ mongoOperations: 4, providerCalls: 1 },
    },
  },
  'stream of 40 chunks, 32 at once': {
    ...{ ...STREAM, ...MANY },
    budget: {
      ...{ redisCalls: 4, redisCommands: 70, redisBytesIn: 6_500, redisBytesOut: 3_600 },
      ...{ mongoOperations: 0.3, providerCalls: 1 },
    },
  },
  // An idle machine writes an entry for every second chunk; a busy one writes fewer.
  'stream of 40 chunks in 400 ms, 32 at once': {
    ...{ ...LIVE, ...MANY, requests: 128 },
    budget: {
      ...{ redisCalls: 11, redisCommands: 173, redisBytesIn: 12_500, redisBytesOut: 6_500 },
      ...{ mongoOperations: 0.4, providerCalls: 1 },
    },
  },
  // Above 50 streams a worker sends on common beats.
  'stream of 40 chunks in 800 ms, 100 at once': {
    ...{ stream: true, model: 'sim?chunks=40&first_token_ms=200&chunk_ms=20', clients: 100, requests: 300 },
    budget: {
      ...{ redisCalls: 4.5, redisCommands: 112, redisBytesIn: 9_300, redisBytesOut: 4_200 },
      ...{ mongoOperations: 0.4, providerCalls: 1 },
    },
  },
};
