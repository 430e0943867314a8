import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import type { FinishReason, Usage } from '../../shared/contracts/events.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { RequestTrace } from '../../shared/contracts/request-trace.ts';
import type { ErrorDetail } from '../../shared/errors/error-body.ts';
import type { ContextSource, ContextValue } from './prompt/context-instruction.ts';
import type { PromptParts } from './prompt/fit-window.ts';
import type { Provider, Rates, Target } from '../../shared/domain/routing/routing.ts';
import type { AttemptRef } from '../../shared/infra/redis/requests/request-store.ts';
import type { MadeClaim } from '../../shared/infra/redis/requests/running-request.ts';

/** One step of a request's life; its input has what the steps before it found out. */
export type Stage<Input, Output> = (run: Input) => Promise<Output>;

/** Runs a stage unless the request must not go on. Throws Interrupted or the Stopped of its lease. */
export function whileOwned<Input extends Claimed, Output>(stage: Stage<Input, Output>, run: Input): Promise<Output> {
  const { signal } = run.lease;
  if (run.interrupted) throw new Interrupted();
  if (signal.aborted) throw signal.reason instanceof Stopped ? signal.reason : new Stopped('superseded');
  return stage(run);
}

/** The job of a delivery, as its queue has it. */
interface DeliveredJob {
  /** The claim that was made as it was taken. Undefined: the request has yet to be claimed. */
  claim: MadeClaim | undefined;
  /** The lock of the job, which is to end with the request. Undefined: it is kept for people to see. Asked once. */
  lockToEnd(run: Claimed, outcome: Outcome): string | undefined;
}

/** One delivery of a job. */
export interface Delivery {
  shard: number;
  requestId: string;
  tenantId: string;
  /** Rises with every delivery of the same job: the fence. */
  attempt: number;
  /** The request has been tried often enough: it is ended, not run again. */
  endOnly?: boolean;
  /** Absent: the sweep runs the request beside its queue. */
  job?: DeliveredJob;
}

/** A request that this delivery owns. */
export interface Claimed {
  /** An earlier delivery died after it had sent text, or there were too many: the request ends, it is not generated again. */
  interrupted: boolean;
  ref: AttemptRef;
  /** Absent: the sweep runs the request beside its queue. */
  job: DeliveredJob | undefined;
  envelope: RequestEnvelope;
  /** Place in the order of acceptance. */
  seq: number;
  rates: Rates;
  lease: Lease;
  answer: AnswerSoFar;
}

/** Keeps the request owned while it runs, and says when to stop. */
export interface Lease {
  /** Aborts when the request is cancelled, superseded, out of credits or past its deadline; the reason is a StopReason. */
  signal: AbortSignal;
  /** Tells what the request has used so far, for hold and token weight. */
  need(usage: Usage): void;
  /**
   * Holds the prompt that a provider is to be asked; `isNew`: admission did not know all of it. True: the longest answer
   * is held as well, so nobody need watch it grow. Throws Stopped where credits, budget or allowance do not cover it.
   */
  cover(promptTokens: number, isNew: boolean): Promise<boolean>;
  /** Tokens of the answer that may be released so far; Infinity: all. */
  granted(): number;
  /** Asks that so many may be released; `granted` has what came of it. Rejects where Redis did not answer. */
  grant(completionTokens: number): Promise<void>;
  /** Ends the request because nothing more is granted. */
  exhaust(): void;
  /** Asks at once whether the request is still owned and wanted. */
  check(): Promise<void>;
  stop(reason: StopReason): void;
  release(): void;
}

/** What bounds the text of a request. */
export type Bound = 'credits' | 'budget' | 'allowance';

export type StopReason = 'cancelled' | 'superseded' | 'exhausted' | 'deadline' | 'shutdown';

/** The reason a lease's signal aborts with. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
  readonly reason: StopReason;
  /** With `exhausted`: which bound was reached. */
  readonly bound: Bound | undefined;

  constructor(reason: StopReason, bound?: Bound) {
    super(`The attempt was stopped: ${reason}`);
    this.reason = reason;
    this.bound = bound;
  }
}

/** An earlier delivery died after it had sent text, so the request cannot be generated again. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** What has been generated and sent; shared by the stages so that a failure knows what to charge. */
export interface AnswerSoFar {
  /** Sequence number of the last event in the stream. */
  sentSeq: number;
  /** All text that was released to the caller or waits in `unsent`. */
  text: string;
  /** Released, not yet in the stream: it goes out with the terminal event. */
  unsent: string[];
  /** What this attempt has sent, should Redis lose some of it. */
  sent: string[];
  /** What the provider was asked; undefined: nobody has been asked yet. */
  asked: readonly ChatMessage[] | undefined;
  /** An estimate of what was asked; 0: nobody has been asked yet. */
  promptTokens: number;
  /** Whole answers were thrown away because they were not what was asked for. */
  rejected?: 'not_json';
  provider: string;
  model: string;
  trace: RequestTrace;
  /** The turn was written to its entity, or may have been. */
  isTurnSaved?: boolean;
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
  /** The values of which the prompt's instruction is made. */
  context: readonly ContextValue[];
  prompt: PromptParts;
}

export interface Routed extends Assembled {
  /** In the order in which they are tried. */
  targets: { target: Target; provider: Provider }[];
}

/** Why a provider was asked for tokens that nobody pays for. */
export type UnbilledReason = 'cancelled' | 'failed' | 'flagged' | 'not_json';

/** How a request ends: with an answer, or with what there was of it. */
export interface Outcome {
  finishReason: FinishReason;
  usage: Usage;
  error?: ErrorDetail;
  /** The prompt of a request that ended without text after a provider was called. */
  unbilled?: { promptTokens: number; reason: UnbilledReason };
}

/** A request that this delivery has ended. */
export interface Ended {
  run: Claimed;
  outcome: Outcome;
}

export interface Generated extends Routed {
  outcome: Outcome;
}
