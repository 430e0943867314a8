/**
 * The stages, and their order: what a worker does with one delivery of a request.
 *
 * - **claim** makes the delivery the request's owner. Every later write names the delivery's number, the fence, and the
 *   claim, and is refused otherwise, in the script that would have written. So a delivery that another one has
 *   overtaken can send nothing and charge nothing.
 * - The **lease** of 10 s is renewed every 3 s (claim.ts). The renewal grants credits, budget and allowance, which
 *   spending.ts turns into text that may leave, and says why to stop, as one abort signal: cancelled, abandoned,
 *   superseded, out of credits, past the deadline.
 * - **build-prompt, moderate, generate** make the answer. Before the first text another call may replace a failed one;
 *   after it a failure ends the request with a typed error and the usage so far.
 * - **finish** writes the turn before the last event, so that the caller's next request finds it, and ends the request;
 *   **conclude** turns a failure, a cancel or a passed deadline into such an end.
 *
 * Every stage may run twice. If a worker dies before text was sent, the next delivery starts from the beginning and the
 * client sees pings. If it dies later, the next one only ends the request: a second answer would not continue the
 * first. A stage imports no other stage, only this file, which says what each gets and adds.
 */
import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { mergeAnswer, wordsOf } from '../../shared/contracts/events.ts';
import type { FinishReason, Increment, Usage, RequestTrace } from '../../shared/contracts/events.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import type { ReportedUsage } from '../providers/provider.ts';
import type { PromptParts } from './fit-window.ts';
import type { Provider, Rates, Target, TargetCost } from '../../shared/domain/routing.ts';
import type { Delivery } from '../../shared/requests/delivery-store.ts';
import type { ScriptReply } from '../../shared/redis/scripts.ts';

export interface ContextSource {
  subject?: string;
  grade?: string;
}

/** Values are looked for in this order. */
export const ORIGINS = ['request', 'entity', 'tenant'] as const;
export type ContextSources = Partial<Record<(typeof ORIGINS)[number], ContextSource | undefined>>;

export interface ContextValue {
  field: keyof ContextSource;
  origin: (typeof ORIGINS)[number];
  text: string;
}

/** One step of the pipeline. Its input contains what the earlier stages added. */
export type Stage<Input, Output> = (run: Input) => Promise<Output>;

/** Runs a stage unless the request must stop. Throws Interrupted, or the Stopped of its lease. */
function whileOwned<Input extends Claimed, Output>(stage: Stage<Input, Output>, run: Input): Promise<Output> {
  const { signal } = run.lease;
  if (run.interrupted) throw new Interrupted();
  if (signal.aborted) throw signal.reason instanceof Stopped ? signal.reason : new Stopped('superseded');
  return stage(run);
}

interface QueueJob {
  /** Proves that this worker has the job, and names its claim of the request. */
  lock: string;
  /** The reply of the claim that was made with the job. Undefined: the request has yet to be claimed. */
  claim: ScriptReply[] | undefined;
  /** The request has a place at its provider, or waits for one there: another one may be taken out of the queue. */
  placed(): void;
  /** True if the job ends with its request, so that it is not kept for Bull Board. Call it once. */
  endsWith(run: Claimed, outcome: Outcome): boolean;
}

/** A request that a worker was handed, before it is claimed. */
export interface HandedRequest {
  shard: number;
  requestId: string;
  tenantId: string;
  /** Rises with each delivery of the same job. */
  fence: number;
  /** The request has been tried often enough: end it, do not run it again. */
  endOnly?: boolean;
  /** Absent: the sweep runs the request beside its queue. */
  job?: QueueJob | undefined;
}

/** A request that this delivery owns. */
export interface Claimed {
  /** An earlier delivery died after sending text, or there were too many: end the request, do not generate again. */
  interrupted: boolean;
  delivery: Delivery;
  /** Absent: the sweep runs the request beside its queue. */
  job: QueueJob | undefined;
  envelope: RequestEnvelope;
  /** Place in the order of acceptance. */
  seq: number;
  /** By Redis's clock: rises with each delivery, even if a rollback repeats the fence. */
  claimedAt: number;
  rates: Rates;
  /** The fate of the request without readers; '': it goes on. */
  onDisconnect: string;
  lease: Lease;
  answer: AnswerSoFar;
}

export interface Lease {
  /** Aborts when the request is cancelled, superseded, out of credits or past its deadline; the reason is a Stopped. */
  signal: AbortSignal;
  /** Notes what the request has used so far, for hold and token weight. */
  need(usage: Usage): void;
  /**
   * Holds what a prompt costs before a provider is called. `isNew`: admission did not know all of the prompt. Returns
   * whether the hold also covers the longest answer, whose growth then need not be watched. Throws Stopped if credits,
   * budget or allowance do not cover the prompt.
   */
  cover(promptTokens: number, isNew: boolean): Promise<boolean>;
  /** Tokens of the answer that may be released so far; Infinity: all. */
  granted(): number;
  /** Asks for this many tokens; `granted` then returns the result. Rejects if Redis does not answer. */
  grant(completionTokens: number): Promise<void>;
  /**
   * Returns the part of a usage that is charged: held, or covered by credits, budget or allowance. Text was counted in
   * bytes while it ran (spending.ts), so the count at the end may be above that.
   */
  payable(usage: Usage): Promise<Usage>;
  /** Stops the request because no more tokens are granted. */
  exhaust(): void;
  /** Asks Redis at once whether the request is still owned and wanted. */
  check(): Promise<void>;
  stop(reason: StopReason): void;
  release(): void;
}

export type Bound = 'credits' | 'budget' | 'allowance';

export type StopReason = 'cancelled' | 'superseded' | 'exhausted' | 'deadline' | 'shutdown';

export class Stopped extends Error {
  override readonly name = 'Stopped';
  readonly reason: StopReason;
  /** With `exhausted`: which bound was reached. */
  readonly bound: Bound | undefined;

  constructor(reason: StopReason, bound?: Bound) {
    super(`The request was stopped: ${reason}`);
    this.reason = reason;
    this.bound = bound;
  }
}

/** An earlier delivery died after it had sent text, so the request cannot be generated again. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** One call of a provider, for what it cost the operator (spending.ts). */
export interface Ask {
  messages: readonly ChatMessage[];
  /** Of the target. */
  contextWindow: number;
  /** The price at which the target's provider charges the operator. Undefined: unknown. */
  cost: TargetCost | undefined;
  /** Estimated. */
  promptTokens: number;
  /** The part of the prompt's tokens that the caller pays for, where the call repairs an answer. */
  paidPrompt?: number | undefined;
  maxTokens: number;
  /** In UTF-16 units and pieces, shown or not. */
  heard: { units: number; pieces: number };
  reported: ReportedUsage | undefined;
  durationMs: number;
  /** The provider refused the call or could not be reached, so it has done no work. */
  isRefused: boolean;
}

export interface ReleasedAnswer {
  /** Includes the text of other deltas and of `unsent`. */
  text: string;
  /** Once something else than plain text has been released: the lines of all increments. */
  lines?: string[] | undefined;
}

/** The answer as generated and sent so far. Stages share it, so that a failure can be charged correctly. */
export interface AnswerSoFar extends ReleasedAnswer {
  /** Released but not in the stream; it goes out with the terminal event. */
  unsent: Increment[];
  /** The messages sent to the provider. Undefined: this delivery has called none. */
  asked: readonly ChatMessage[] | undefined;
  /** An estimate of the tokens sent to a provider; 0: no provider was called. */
  promptTokens: number;
  asks: Ask[];
  /** The reason why whole answers were discarded. */
  rejected?: 'not_json';
  provider: string;
  model: string;
  trace: RequestTrace;
  /** Milliseconds since the epoch. */
  firstTextAt?: number;
  /** The turn was written to its entity, or may have been. */
  isTurnSaved?: boolean;
}

export function isEmpty({ text, lines }: ReleasedAnswer): boolean {
  return text === '' && lines === undefined;
}

export function addIncrement(answer: AnswerSoFar, increment: Increment): void {
  if (typeof increment !== 'string') answer.lines ??= answer.text === '' ? [] : [JSON.stringify(answer.text)];
  answer.lines?.push(typeof increment === 'string' ? JSON.stringify(increment) : increment.line);
  answer.text += wordsOf(increment);
}

/** The `content` of an answer, and whether its message says more than that. */
export function contentOf({ text, lines }: ReleasedAnswer): string | null {
  return lines === undefined ? text : mergeAnswer(lines).message.content;
}

export interface WithEntity extends Claimed {
  /** Undefined: the request names no entity. `rowId` undefined: the entity is unknown. */
  entity: { rowId: string | undefined; context: ContextSource; unseen: ChatMessage[] } | undefined;
  /** Earlier messages of the entity, oldest first. */
  history: readonly ChatMessage[];
  /** The submitted messages that are not in the history. */
  submitted: readonly ChatMessage[];
}

export interface Assembled extends WithEntity {
  context: readonly ContextValue[];
  prompt: PromptParts;
}

export interface Routed extends Assembled {
  /** In the order in which they are tried. */
  targets: { target: Target; provider: Provider }[];
}

/** Reasons for which tokens are not paid. `over_grant`: the bounds of the tenant did not cover them. */
export type UnbilledReason = 'cancelled' | 'failed' | 'flagged' | 'not_json' | 'over_grant';

/** The end of a request: with an answer, with a part of one, or with an error. */
export interface Outcome {
  finishReason: FinishReason;
  usage: Usage;
  error?: ErrorDetail;
  /** The error behind it, for operators. */
  cause?: unknown;
  /** Set when the request is finished. Absent: nothing is charged. */
  charge?: SettlementRecord;
  unbilled?: {
    tokens: Partial<Record<UnbilledReason, number>>;
    /** Those of them that are work of providers. */
    worked: number;
  };
}

export interface Ended {
  run: Claimed;
  outcome: Outcome;
}

export interface Generated extends Routed {
  outcome: Outcome;
}

export interface Stages {
  /** Undefined: another delivery, or the sweep, has the request. */
  claim: (handed: HandedRequest) => Promise<Claimed | undefined>;
  loadContext: Stage<Claimed, WithEntity>;
  assemblePrompt: Stage<WithEntity, Assembled>;
  moderate: Stage<Assembled, Assembled>;
  classify: Stage<Claimed, Outcome>;
  selectRoute: Stage<Assembled, Routed>;
  generate: Stage<Routed, Generated>;
  saveTurn: Stage<Generated, Generated>;
  conclude: (run: Claimed, error: unknown) => Promise<Outcome | undefined>;
  finish: (run: Claimed, outcome: Outcome) => Promise<boolean>;
  storeAnswer: Stage<Claimed, void>;
}

/** Undefined: another delivery or the sweep ends the request, or has ended it. */
export type RunPipeline = (handed: HandedRequest) => Promise<Ended | undefined>;

/** Resolves once this delivery has nothing left to do, whoever ends the request; rejects only if a store is away. */
export function createPipeline(stages: Stages): RunPipeline {
  async function answer(claimed: Claimed): Promise<Outcome> {
    if (claimed.envelope.request.task?.kind === 'moderation') return whileOwned(stages.classify, claimed);
    const withEntity = await whileOwned(stages.loadContext, claimed);
    const assembled = await stages.assemblePrompt(withEntity);
    const moderated = await whileOwned(stages.moderate, assembled);
    const routed = await whileOwned(stages.selectRoute, moderated);
    const generated = await stages.generate(routed);
    const { outcome } = await stages.saveTurn(generated);
    return outcome;
  }

  return async (handed) => {
    const claimed = await stages.claim(handed);
    if (claimed === undefined) return undefined;
    try {
      const outcome = await answer(claimed).catch((error: unknown) => stages.conclude(claimed, error));
      if (outcome === undefined) return undefined;
      const isFinished = await stages.finish(claimed, outcome);
      if (isFinished) await stages.storeAnswer(claimed);
      return isFinished ? { run: claimed, outcome } : undefined;
    } finally {
      claimed.lease.release();
    }
  };
}
