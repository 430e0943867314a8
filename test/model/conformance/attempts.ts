import { eventsOf } from '../../../shared/contracts/events.ts';
import { ALL_GUARDS, append, claim, finish, renew } from '../lifecycle.ts';
import type { World } from '../lifecycle.ts';
import { FAILED, RETENTION_MS } from '../../support/request-lab.ts';
import { expectSame } from './two-worlds.ts';
import type { Attempt, Fault, Subject, TwoWorlds } from './two-worlds.ts';

const COST_PER_EVENT = 7;
/** By so much the provider's count at the end is above ours, so that a charge can be above what is held. */
const COUNTED_MORE = 25;
const OVERDRAFT = 3;
/** What a renewal asks for beside what is used. */
const INTERVAL = 10;
const BATCHES = 4;

export interface Attempts {
  start(subject: Subject, number: number, endOnly?: boolean): void;
  step(subject: Subject, attempt: Attempt | undefined, fault: Fault): Promise<void>;
}

/** Workers: each attempt claims its request, writes and renews in turn, and finishes; as the stages of the pipeline do. */
export function createAttempts(worlds: TwoWorlds): Attempts {
  const { lab, shard, keys, tenantId, both } = worlds;

  async function end(subject: Subject, attempt: Attempt): Promise<void> {
    attempt.phase = 'over';
    subject.hasJob = false;
    await lab.redis.del(`${keys.tag}:interactive:${subject.request.requestId}`);
  }

  async function stepClaim(subject: Subject, attempt: Attempt, fault: Fault): Promise<void> {
    const { number, name: owner } = attempt;
    const { sentSeq } = subject.model;
    const send = () => lab.requests.claim(shard, subject.request.requestId, tenantId, number);
    const { redis, model } = await both(subject, fault, send, (world) =>
      // Without its body a request is nobody's to run.
      subject.hasBody ? claim(world, { attempt: number, owner }, ALL_GUARDS) : ({ world, outcome: 'drop' } as const),
    );
    expectSame(`claim by ${owner}`, redis.kind, model.outcome);
    if (redis.kind === 'drop') return end(subject, attempt);
    expectSame(`what ${owner} finds`, redis.sent, sentSeq);
    attempt.found = sentSeq;
    attempt.phase = sentSeq > 0 || attempt.endOnly ? 'finish' : 'work';
  }

  async function stepWork(subject: Subject, attempt: Attempt, fault: Fault): Promise<void> {
    const { number: fence, name } = attempt;
    const { request } = subject;
    attempt.steps += 1;
    if (attempt.steps % 2 === 0) {
      const must = attempt.written * COST_PER_EVENT + INTERVAL;
      const ahead = 2 * must;
      const ask = {
        weight: must,
        must: { micro: must, tokens: must },
        ahead: { micro: ahead, tokens: ahead },
        overrun: { micro: 0, tokens: 0 },
      };
      const send = () => lab.requests.renew(request.ref(fence), ask);
      const { redis, model } = await both(subject, fault, send, (world) =>
        renew(world, { fence, must, ahead }, ALL_GUARDS),
      );
      expectSame(`renewal of ${name}`, redis.outcome, model.outcome);
      if (redis.outcome === 'superseded') return end(subject, attempt);
      expectSame(`what ${name} holds`, redis.held.micro, subject.model.hold);
      if (redis.outcome !== 'ok' || redis.held.micro < must) attempt.phase = 'finish';
      return;
    }
    const lastSeq = attempt.written + 1;
    const send = () => lab.requests.append(request.ref(fence), lastSeq, [name]);
    const { redis, model } = await both(subject, fault, send, (world) => append(world, { fence, lastSeq }, ALL_GUARDS));
    expectSame(`text of ${name}`, redis, model.outcome);
    if (redis === 'superseded') return end(subject, attempt);
    attempt.written = lastSeq;
    if (redis === 'cancelled' || attempt.written === BATCHES) attempt.phase = 'finish';
  }

  async function stepFinish(subject: Subject, attempt: Attempt, fault: Fault): Promise<void> {
    const { number: fence, name } = attempt;
    const { request } = subject;
    const { requestId } = request;
    const sent = attempt.found + attempt.written;
    const cost = sent === 0 ? undefined : sent * COST_PER_EVENT + COUNTED_MORE;
    const usage = { promptTokens: 0, completionTokens: sent };
    const terminal = sent === 0 ? FAILED.terminal : ({ finishReason: 'stop', usage } as const);
    const ending =
      cost === undefined
        ? FAILED
        : ({
            status: 'completed',
            deltas: [],
            terminal,
            costMicro: cost,
            overdraftMicro: OVERDRAFT,
            retentionMs: RETENTION_MS,
            settlement: request.settlement(cost, sent),
          } as const);
    const call = { requestId, fence, lastSeq: sent + eventsOf(terminal), cost, overdraft: OVERDRAFT };
    const rule = (world: World) => {
      const result = finish(world, call, ALL_GUARDS);
      if (result.charged !== undefined) worlds.outbox.push({ requestId, cost: result.charged });
      if (result.ended) subject.hasBody = false;
      return result;
    };
    const send = () => lab.requests.finish(request.ref(fence), sent, ending);
    const { redis, model } = await both(subject, fault, send, rule);
    expectSame(`end by ${name}`, redis, model.outcome === 'finished');
    await end(subject, attempt);
  }

  return {
    start(subject, number, endOnly = false) {
      const name = `attempt ${subject.attempts.length}`;
      subject.attempts.push({ name, number, phase: 'claim', endOnly, found: 0, written: 0, steps: 0 });
    },
    async step(subject, attempt, fault) {
      if (attempt === undefined || attempt.phase === 'over') return;
      // BullMQ keeps the job of a worker that died, and starts it again.
      if (fault === 'crash') attempt.phase = 'over';
      else if (attempt.phase === 'claim') await stepClaim(subject, attempt, fault);
      else if (attempt.phase === 'finish' || fault === 'gaveUp') await stepFinish(subject, attempt, fault);
      else await stepWork(subject, attempt, fault);
    },
  };
}
