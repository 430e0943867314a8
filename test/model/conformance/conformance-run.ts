import { LOST } from '../../../shared/contracts/events.ts';
import { ALL_GUARDS, admit, cancel, join, voidLater } from '../lifecycle.ts';
import { createDeliveries } from './deliveries.ts';
import { createBookKeepers } from './book-keepers.ts';
import type { ConformanceLab, ShardView } from './conformance-lab.ts';
import { createTwoWorlds, expectSame } from './two-worlds.ts';
import type { Fault, Subject } from './two-worlds.ts';

/** One micro-credit a token. */
const RATES = { promptMicro: 1, completionMicro: 1 };
const PROMPT_TOKENS = 10;
const PROMPT_MOST_TOKENS = 40;
const MAX_TOKENS = 20;
const ESTIMATE = PROMPT_TOKENS + MAX_TOKENS;
/** See DELIVERIES_MAX in workers/settlement/sweep.ts. */
const TRIED_OFTEN = 3;
const ROUNDS_TO_REST = 60;
/** Of what a crash may lose: the job. */
const BODY_ONLY = 1;

export const ACTORS = [
  'admit',
  'enqueue',
  'voidLater',
  'join',
  'deliver',
  'twin',
  'work',
  'cancel',
  'sweep',
  'settle',
  'grant',
  'restart',
] as const;

/** One step of a run: who acts, for which request, which of several deliveries or leaders, and what goes wrong. */
export interface Choice {
  actor: (typeof ACTORS)[number];
  subject: number;
  pick: number;
  fault: Fault;
}

export interface ConformanceRun {
  step(choice: Choice): Promise<void>;
  /** Lets everything that can still happen happen, without faults. */
  comeToRest(): Promise<void>;
  /** The broken promises of docs/architecture.md#promises, in words; empty when all are kept. */
  brokenPromises(): Promise<string[]>;
}

/**
 * Two requests of one tenant on the real scripts, and beside them the model of test/model/lifecycle.ts. Every
 * step throws where an answer, or the state in Redis after it, is not what the model says.
 */
export async function startConformanceRun(lab: ConformanceLab, grantedMicro: number): Promise<ConformanceRun> {
  const worlds = await createTwoWorlds(lab, grantedMicro);
  const { shard, keys, subjects, tenantId, apply, both } = worlds;
  const deliveries = createDeliveries(worlds);
  const bookKeepers = createBookKeepers(worlds);

  async function stepAdmit(subject: Subject, fault: Fault): Promise<void> {
    const { requestId, principal } = subject.request;
    const send = () =>
      lab.admissions.admit(
        {
          requestId,
          principal,
          endpoint: 'chat.stream',
          queue: 'interactive',
          rates: RATES,
          promptTokens: PROMPT_TOKENS,
          promptMostTokens: PROMPT_MOST_TOKENS,
          maxTokens: MAX_TOKENS,
          channel: 'ingress',
          tier: 'mobius',
          metadataJson: undefined,
          onDisconnect: 'finish',
          idempotency: undefined,
          entityHash: undefined,
        },
        Date.now(),
      );
    const { redis, model } = await both(subject, fault, send, (world) =>
      admit(world, ESTIMATE, PROMPT_MOST_TOKENS + MAX_TOKENS),
    );
    expectSame('admit', redis.verdict, model.outcome);
  }

  /** The body and the job are two commands: either may be lost. */
  async function stepEnqueue(subject: Subject, fault: Fault, pick: number): Promise<void> {
    if (subject.model.state === 'absent') return;
    const { requestId, envelope } = subject.request;
    const isBodyLost = fault === 'crash' && pick % 3 !== 1;
    const isJobLost = fault === 'crash' && pick % 3 !== 2;
    if (!isBodyLost) {
      await lab.redis.set(lab.keyspace.shard(shard).body(requestId), JSON.stringify(envelope));
      subject.hasBody = true;
    }
    if (!isJobLost) {
      await lab.redis.lpush(keys.active('interactive'), requestId);
      subject.hasJob = true;
    }
  }

  async function stepTakeBack(subject: Subject, fault: Fault): Promise<void> {
    const { requestId, principal } = subject.request;
    const send = () => lab.admissions.voidPermanently(requestId, principal, LOST);
    const { redis, model } = await both(subject, fault, send, (world) => voidLater(world, ALL_GUARDS));
    expectSame('void', redis, model.outcome === 'absent' ? 'missing' : model.outcome);
    if (model.outcome === 'accepted') subject.hasBody = false;
  }

  async function stepJoin(subject: Subject, fault: Fault): Promise<void> {
    const { requestId, principal } = subject.request;
    const send = () => lab.records.attach(principal, requestId, 'other ingress');
    const { redis, model } = await both(subject, fault, send, join);
    expectSame('attach', redis !== undefined, model.promised);
    if (model.promised) lab.promised.add(requestId);
  }

  async function stepCancel(subject: Subject, fault: Fault): Promise<void> {
    const { requestId, principal } = subject.request;
    const { state } = subject.model;
    const send = () => lab.records.cancel(principal, requestId);
    // The end of a cancelled request is its last chunk and [DONE].
    const { redis } = await both(subject, fault, send, (world) => ({ world: cancel(world, 2) }));
    expectSame('cancel', redis, state !== 'absent' && state !== 'void');
    if (state === 'accepted') subject.hasBody = false;
  }

  /** All leases have run out: what the sweep is expected to do with each request, and what it did. */
  async function stepSweep(): Promise<void> {
    const expected: { requestId: string; fence: number; endOnly: boolean }[] = [];
    for (const { request } of subjects) await lab.redis.zadd(keys.inflight, 'XX', 1, request.requestId);
    const taken = await lab.sweep(shard);
    for (const subject of subjects) {
      const { state, fence, sentSeq } = subject.model;
      if (state !== 'accepted' && state !== 'running') continue;
      if (subject.hasJob && sentSeq === 0) continue;
      if (subject.hasBody) {
        const endOnly = fence >= TRIED_OFTEN;
        expected.push({ requestId: subject.request.requestId, fence: fence + 1, endOnly });
        deliveries.start(subject, fence + 1, endOnly);
      } else if (!lab.promised.has(subject.request.requestId))
        apply(subject, (world) => voidLater(world, ALL_GUARDS, true));
    }
    const byId = (one: { requestId: string }, other: { requestId: string }) =>
      one.requestId < other.requestId ? -1 : 1;
    const told = taken.map(({ requestId, fence, endOnly }) => ({ requestId, fence, endOnly: endOnly === true }));
    expectSame('takeovers', told.sort(byId), expected.sort(byId));
  }

  /** A worker dies and its jobs wait to be started again; settlement begins anew. */
  function restart(): void {
    for (const subject of subjects) for (const delivery of subject.deliveries) delivery.phase = 'over';
    bookKeepers.restart();
  }

  async function act(subject: Subject, { actor, pick, fault }: Choice): Promise<void> {
    switch (actor) {
      case 'admit':
        return stepAdmit(subject, fault);
      case 'enqueue':
        return stepEnqueue(subject, fault, pick);
      case 'voidLater':
        return stepTakeBack(subject, fault);
      case 'join':
        return stepJoin(subject, fault);
      case 'deliver':
        if (subject.hasJob) deliveries.start(subject, (subject.started += 1));
        return;
      case 'twin':
        if (subject.started > 0) deliveries.start(subject, subject.started);
        return;
      case 'work': {
        const open = subject.deliveries.filter(({ phase }) => phase !== 'over');
        return deliveries.step(subject, open[pick % Math.max(1, open.length)], fault);
      }
      case 'cancel':
        return stepCancel(subject, fault);
      case 'sweep':
        return stepSweep();
      case 'settle':
        return bookKeepers.settle(pick, fault);
      case 'grant':
        return bookKeepers.grant(fault);
      case 'restart':
        restart();
    }
  }

  const ids = subjects.map(({ request }) => request.requestId);
  const look = () => lab.view(shard, tenantId, ids);

  function modelView(): ShardView {
    const { account, outbox } = worlds;
    return {
      requests: subjects.map(({ model: { state, fence, sentSeq, hold, cancelled, terminals } }) => ({
        state,
        fence,
        sentSeq,
        hold,
        cancelled,
        terminals,
      })),
      book: account.book,
      version: account.version,
      held: account.held,
      pend: [...account.pending.values()].reduce((sum, cost) => sum + cost, 0),
      pending: Object.fromEntries(account.pending),
      outbox: outbox.map(({ requestId, cost }) => [requestId, cost]),
    };
  }

  return {
    async step(choice) {
      const subject = subjects[choice.subject % subjects.length];
      if (subject === undefined) return;
      await act(subject, choice);
      expectSame(`after ${choice.actor}`, await look(), modelView());
    },

    async comeToRest() {
      for (const subject of subjects) {
        // The queue gives up every job; the sweep has to see to the rest.
        await lab.redis.lrem(keys.active('interactive'), 0, subject.request.requestId);
        subject.hasJob = false;
        // MongoDB has what was promised, and recovery brings back its body.
        if (lab.promised.has(subject.request.requestId)) await stepEnqueue(subject, 'crash', BODY_ONLY);
      }
      for (let round = 0; round < ROUNDS_TO_REST; round += 1) {
        for (const subject of subjects) {
          for (const delivery of [...subject.deliveries]) await deliveries.step(subject, delivery, 'none');
        }
        const isRunning = subjects.flatMap((subject) => subject.deliveries).some(({ phase }) => phase !== 'over');
        if (!isRunning) await stepSweep();
        await bookKeepers.settle(round, 'none');
        await bookKeepers.settle(round + 1, 'none');
        const isOver = subjects.every(({ model }) => model.state !== 'accepted' && model.state !== 'running');
        if (isOver && !isRunning && worlds.outbox.length === 0) break;
      }
      // The grant's publication is the latest of all, as one that hung in the network.
      await bookKeepers.grant('none');
      await bookKeepers.grant('none');
      expectSame('at rest', await look(), modelView());
    },

    async brokenPromises() {
      const view = await look();
      const broken: string[] = [];
      const say = (isBroken: boolean, what: string) => {
        if (isBroken) broken.push(what);
      };
      for (const [index, { state, terminals }] of view.requests.entries()) {
        say(lab.promised.has(ids[index] ?? '') && state !== 'done', `a call got 202, and the request is ${state}`);
        say(state === 'accepted' || state === 'running', `a request never ended: ${state}`);
        say(state === 'done' ? terminals !== 1 : terminals > 1, `${terminals} terminal events`);
      }
      const { ledger, balance } = worlds.book;
      for (const id of ids) {
        const entries = ledger.filter(({ requestId }) => requestId === id).length;
        say(entries > 1, `${entries} ledger entries`);
      }
      say(view.held !== 0, `${view.held} still held`);
      say(view.pend !== 0 || Object.keys(view.pending).length > 0, 'a charge is pending for ever');
      say(view.outbox.length > 0, 'the outbox is not empty');
      say(view.book !== balance, 'Redis has another balance than the book');
      say((await lab.redis.zcard(keys.inflight)) > 0, 'the sweep has something left to look at');
      return broken;
    },
  };
}
