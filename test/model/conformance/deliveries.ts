import { eventsOf } from '../../../shared/contracts/events.ts';
import { ALL_GUARDS, append, claim, finish, renew } from '../lifecycle.ts';
import type { World } from '../lifecycle.ts';
import { FAILED, RETENTION_MS } from '../../support/request-lab.ts';
import { expectSame } from './two-worlds.ts';
import type { SteppedDelivery, Fault, Subject, TwoWorlds } from './two-worlds.ts';

const COST_PER_EVENT = 7;
/** By so much the provider's count at the end is above ours, so that a charge can be above what is held. */
const COUNTED_MORE = 25;
const OVERDRAFT = 3;
/** What a renewal asks for beside what is used. */
const INTERVAL = 10;
const BATCHES = 4;

export interface Deliveries {
  start(subject: Subject, number: number, endOnly?: boolean): void;
  step(subject: Subject, delivery: SteppedDelivery | undefined, fault: Fault): Promise<void>;
}

/** Workers: each delivery claims its request, writes and renews in turn, and finishes; as the stages of the pipeline do. */
export function createDeliveries(worlds: TwoWorlds): Deliveries {
  const { lab, keys, both } = worlds;

  async function end(subject: Subject, delivery: SteppedDelivery): Promise<void> {
    delivery.phase = 'over';
    subject.hasJob = false;
    await lab.redis.lrem(keys.active('interactive'), 0, subject.request.requestId);
  }

  async function stepClaim(subject: Subject, delivery: SteppedDelivery, fault: Fault): Promise<void> {
    const { number, name: owner } = delivery;
    const { sentSeq } = subject.model;
    const send = () => lab.requests.claim(subject.request.ref(number));
    const { redis, model } = await both(subject, fault, send, (world) =>
      // Without its body a request is nobody's to run.
      subject.hasBody ? claim(world, { fence: number, owner }, ALL_GUARDS) : ({ world, outcome: 'drop' } as const),
    );
    expectSame(`claim by ${owner}`, redis.kind, model.outcome);
    if (redis.kind === 'drop') return end(subject, delivery);
    expectSame(`what ${owner} finds`, redis.kind === 'run' ? redis.sent : undefined, sentSeq);
    delivery.found = sentSeq;
    delivery.phase = sentSeq > 0 || delivery.endOnly ? 'finish' : 'work';
  }

  async function stepWork(subject: Subject, delivery: SteppedDelivery, fault: Fault): Promise<void> {
    const { number: fence, name } = delivery;
    const { request } = subject;
    delivery.steps += 1;
    if (delivery.steps % 2 === 0) {
      const must = delivery.written * COST_PER_EVENT + INTERVAL;
      const ahead = 2 * must;
      const ask = {
        weight: must,
        required: { micro: must, tokens: must },
        preferred: { micro: ahead, tokens: ahead },
        overdraft: { micro: 0, tokens: 0 },
      };
      const send = () => lab.requests.renew(request.ref(fence), ask);
      const { redis, model } = await both(subject, fault, send, (world) =>
        renew(world, { fence, must, ahead }, ALL_GUARDS),
      );
      expectSame(`renewal of ${name}`, redis.outcome, model.outcome);
      if (redis.outcome === 'superseded') return end(subject, delivery);
      expectSame(`what ${name} holds`, redis.held.micro, subject.model.hold);
      if (redis.outcome !== 'ok' || redis.held.micro < must) delivery.phase = 'finish';
      return;
    }
    const lastSeq = delivery.written + 1;
    const send = () => lab.requests.append(request.ref(fence), lastSeq, [name]);
    const { redis, model } = await both(subject, fault, send, (world) => append(world, { fence, lastSeq }, ALL_GUARDS));
    expectSame(`text of ${name}`, redis, model.outcome);
    if (redis === 'superseded') return end(subject, delivery);
    delivery.written = lastSeq;
    if (redis === 'cancelled' || delivery.written === BATCHES) delivery.phase = 'finish';
  }

  async function stepFinish(subject: Subject, delivery: SteppedDelivery, fault: Fault): Promise<void> {
    const { number: fence, name } = delivery;
    const { request } = subject;
    const { requestId } = request;
    const sent = delivery.found + delivery.written;
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
    await end(subject, delivery);
  }

  return {
    start(subject, number, endOnly = false) {
      const name = `delivery ${subject.deliveries.length}`;
      subject.deliveries.push({ name, number, phase: 'claim', endOnly, found: 0, written: 0, steps: 0 });
    },
    async step(subject, delivery, fault) {
      if (delivery === undefined || delivery.phase === 'over') return;
      // BullMQ keeps the job of a worker that died, and starts it again.
      if (fault === 'crash') delivery.phase = 'over';
      else if (delivery.phase === 'claim') await stepClaim(subject, delivery, fault);
      else if (delivery.phase === 'finish' || fault === 'gaveUp') await stepFinish(subject, delivery, fault);
      else await stepWork(subject, delivery, fault);
    },
  };
}
