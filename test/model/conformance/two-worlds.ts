import { isDeepStrictEqual } from 'node:util';

import { NO_REQUEST } from '../lifecycle.ts';
import type { Account, Book, Request, World } from '../lifecycle.ts';
import type { Admission } from '../../../shared/requests/admission-store.ts';
import type { ShardKeys } from '../../../shared/redis/keyspace.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { labRequest, principalOf } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import type { ConformanceLab } from './conformance-lab.ts';

/** `lost`: the answer to the command is lost and the command sent again. `crash`: the actor dies before it acts. */
export type Fault = 'none' | 'lost' | 'crash' | 'gaveUp';

/** One delivery of a job, or a takeover by the sweep. */
export interface SteppedDelivery {
  /** Two deliveries may have the same number; their calls never have the same name. */
  name: string;
  number: number;
  phase: 'claim' | 'work' | 'finish' | 'over';
  endOnly: boolean;
  /** Text it found in the stream when it claimed the request. */
  found: number;
  written: number;
  steps: number;
}

export interface Subject {
  request: LabRequest;
  model: Request;
  hasBody: boolean;
  hasJob: boolean;
  /** How often the job was started. */
  started: number;
  deliveries: SteppedDelivery[];
}

/** Two requests of one tenant on a shard of their own, in Redis and in the model. */
export interface TwoWorlds {
  lab: ConformanceLab;
  shard: number;
  keys: ShardKeys;
  tenantId: string;
  subjects: Subject[];
  /** What the model says. */
  account: Account;
  book: Book;
  outbox: { requestId: string; cost: number }[];
  /** Lets a rule of the model act on a request and the account. */
  apply<Result extends { world: World }>(subject: Subject, rule: (world: World) => Result): Result;
  /** Sends a command, twice where its first answer is lost, and has the model do the same. */
  both<Redis, Result extends { world: World }>(
    subject: Subject,
    fault: Fault,
    send: () => Promise<Redis>,
    rule: (world: World) => Result,
  ): Promise<{ redis: Redis; model: Result }>;
}

const SUBJECTS = 2;

const UNASKED: Admission = {
  verdict: 'void',
  requests: 0,
  requestsResetMs: 0,
  tokens: 0,
  tokensResetMs: 0,
  retryAfterMs: 0,
  estimateTokens: 0,
  seq: 0,
  now: 0,
};

export function expectSame(what: string, redis: unknown, model: unknown): void {
  if (isDeepStrictEqual(redis, model)) return;
  throw new Error(`${what}\nRedis: ${JSON.stringify(redis)}\nmodel: ${JSON.stringify(model)}`);
}

/** `grantedMicro`: the tenant's balance. */
export async function createTwoWorlds(lab: ConformanceLab, grantedMicro: number): Promise<TwoWorlds> {
  const shard = lab.newShard();
  const tenantId = newId('ten');
  await lab.accounts.publishBalance(shard, tenantId, { balanceMicro: grantedMicro, version: 1, tokensByMonth: {} });
  const worlds: TwoWorlds = {
    lab,
    shard,
    keys: lab.keyspace.shard(shard),
    tenantId,
    subjects: Array.from({ length: SUBJECTS }, (): Subject => {
      const request = labRequest(newId('req'), principalOf({ tenantId, shard }), { ...UNASKED, now: Date.now() });
      return { request, model: NO_REQUEST, hasBody: false, hasJob: false, started: 0, deliveries: [] };
    }),
    account: { book: grantedMicro, version: 1, pending: new Map(), held: 0 },
    book: { balance: grantedMicro, version: 1, ledger: [] },
    outbox: [],
    apply(subject, rule) {
      const result = rule({ request: subject.model, account: worlds.account });
      subject.model = result.world.request;
      worlds.account = result.world.account;
      return result;
    },
    async both(subject, fault, send, rule) {
      if (fault === 'lost') {
        lab.sendNextTwice();
        worlds.apply(subject, rule);
      }
      const redis = await send();
      return { redis, model: worlds.apply(subject, rule) };
    },
  };
  return worlds;
}
