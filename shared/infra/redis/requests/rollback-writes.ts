import { setTimeout as pause } from 'node:timers/promises';

import type { ScriptReply } from '../scripts.ts';
import type { Append } from './common-append.ts';
import { knownSeq } from './running-request.ts';
import type { AttemptRef, Ending, WriteOutcome } from './running-request.ts';

export interface AppendMore {
  /** What the provider was asked: kept for whoever has to end the request. */
  promptTokens?: number;
  /** Increments that this attempt has appended before. */
  earlier?: readonly string[];
}

/** The writes of an attempt, each as a Redis needs it that may have come back without its last ones. */
export interface RollbackWrites {
  /** Sends again what Redis has lost of the text before. */
  append(ref: AttemptRef, lastSeq: number, deltas: readonly string[], more: AppendMore): Promise<WriteOutcome>;
  /** The same of the end; answers what finish.lua says. */
  end(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<ScriptReply>;
  /** Renews by `send`; answers what renew.lua says. */
  renew(ref: AttemptRef, send: () => Promise<readonly ScriptReply[]>): Promise<readonly ScriptReply[]>;
}

export interface RollbackWritesDeps {
  /** One call of each script. */
  append: (text: Append) => Promise<ScriptReply>;
  end: (ref: AttemptRef, sentSeq: number, ending: Ending) => Promise<ScriptReply>;
  /** Claims by the name of the claim that Redis has come back without. Answers what claim.lua says. */
  claim: (ref: AttemptRef, owner: string) => Promise<ScriptReply>;
  hasReconnectedRecently: (withinMs: number) => boolean;
}

/** A rollback takes back claim and text; another one meanwhile is one more. */
const REPAIRS_MAX = 5;
/** For so long after its return nothing is known of claims that Redis came back without, or that are being given back. */
const CLAIMS_BACK_MS = 1_500;
const AGAIN_MS = 100;
/** A master that is away for longer, of several, is no reason to wait for ever. */
const TRIES_MAX = 20;

const isSuperseded = (outcome: unknown) => outcome === 'superseded';

export function createRollbackWrites(deps: RollbackWritesDeps): RollbackWrites {
  const { append, end, claim, hasReconnectedRecently } = deps;

  /**
   * Writes once more, a moment later, what was refused because another attempt owns the request. A call that takes jobs
   * and was under way when the connection broke is sent again once Redis is back. Where Redis came back without the claims
   * of requests that run, that call claims them for a worker which gives them back at once (job-store.ts). An attempt that
   * writes in between would be refused, and a stream end whose worker lives.
   */
  async function patiently<Outcome>(
    write: () => Promise<Outcome>,
    isRefused: (outcome: Outcome) => boolean,
  ): Promise<Outcome> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await write();
      if (!isRefused(outcome) || tries === TRIES_MAX || !hasReconnectedRecently(CLAIMS_BACK_MS)) return outcome;
      await pause(AGAIN_MS);
    }
  }

  /** Claims again what Redis has come back without; another attempt may have been quicker. */
  async function ownAgain(ref: AttemptRef): Promise<boolean> {
    if (ref.owner === undefined) return false;
    const reply = await claim(ref, ref.owner);
    return Array.isArray(reply) && reply[0] === 'run';
  }

  /** Ends a request, with all the text that Redis has come back without. */
  async function endWhole(ref: AttemptRef, sentSeq: number, ending: Ending): Promise<ScriptReply> {
    const { earlier = [], deltas } = ending;
    let [follows, missing] = [sentSeq, deltas];
    for (let tries = 0; tries < REPAIRS_MAX; tries += 1) {
      const outcome = await end(ref, follows, { ...ending, deltas: missing });
      if (outcome === 'accepted') {
        if (!(await ownAgain(ref))) return 'superseded';
        continue;
      }
      const known = knownSeq(outcome);
      if (known === undefined) return outcome;
      // What an attempt before this one has written is known to Redis only.
      missing = [...earlier, ...deltas].slice(Math.max(0, known - (sentSeq - earlier.length)));
      follows = known;
    }
    return 'superseded';
  }

  /** Appends text, with all that Redis has come back without. */
  async function appendWhole(
    ref: AttemptRef,
    lastSeq: number,
    deltas: readonly string[],
    { promptTokens = 0, earlier = [] }: AppendMore,
  ): Promise<WriteOutcome> {
    const first = lastSeq - deltas.length - earlier.length;
    let missing = deltas;
    for (let tries = 0; tries < REPAIRS_MAX; tries += 1) {
      const outcome = await append({ ref, lastSeq, deltas: missing, promptTokens });
      if (outcome === 'accepted') {
        if (!(await ownAgain(ref))) return 'superseded';
        continue;
      }
      const known = knownSeq(outcome);
      // append.lua knows no other outcome.
      if (known === undefined) return outcome as WriteOutcome;
      if (known < first) return 'superseded';
      missing = [...earlier, ...deltas].slice(known - first);
    }
    return 'superseded';
  }

  return {
    append: (...call) => patiently(() => appendWhole(...call), isSuperseded),
    end: (...call) => patiently(() => endWhole(...call), isSuperseded),
    renew: (ref, send) =>
      patiently(
        async () => {
          const reply = await send();
          return reply[0] === 'accepted' && (await ownAgain(ref)) ? send() : reply;
        },
        ([found]) => found === 'superseded' || found === 'accepted',
      ),
  };
}
