import type { RequestEnvelope } from '../../../contracts/jobs.ts';
import { parseEnvelope, UnreadableError } from '../../../contracts/stored-request.ts';
import type { Rates } from '../../../domain/routing/routing.ts';

/** An attempt's right to write: a higher fence shuts out every lower one. */
export interface ClaimedRequest {
  kind: 'run';
  shard: number;
  fence: number;
  envelope: RequestEnvelope;
  /** Milliseconds until the request's deadline; negative when it has passed. */
  remainingMs: number;
  /** Sequence number of the last event that an earlier attempt sent; 0: nothing was sent. */
  sent: number;
  cancelled: boolean;
  seq: number;
  held: Held;
  /** The prices of its acceptance. Undefined: a record without them. */
  rates: Rates | undefined;
  /** What an earlier attempt asked, as it counted; 0: not known. */
  promptTokens: number;
  /** Redis's clock minus this process's is not known: all times of a request are Redis's. */
  now: number;
}

/** What a request holds of each bound; Infinity where the bound does not apply to it. */
export interface Held {
  micro: number;
  /** Of the monthly budget, or of the test allowance. */
  tokens: number;
}

/** As raise_holds of account.lua answers it: -1 where a bound does not apply. */
export function toHeld(micro: unknown, tokens: unknown): Held {
  const amountOf = (held: unknown) => (Number(held) === -1 ? Infinity : Number(held));
  return { micro: amountOf(micro), tokens: amountOf(tokens) };
}

/** `rates`: micro-credits a token of prompt and completion, as admit.lua wrote them. */
function toRates(rates: string): Rates | undefined {
  const [promptMicro, completionMicro] = rates.split(' ').map(Number);
  return promptMicro === undefined || completionMicro === undefined ? undefined : { promptMicro, completionMicro };
}

export function toClaimed(
  shard: number,
  fence: number,
  envelope: RequestEnvelope,
  reply: readonly string[],
): ClaimedRequest {
  const [, , remainingMs, sent, cancel, seq, now, micro, tokens, rates = '', promptTokens] = reply;
  return {
    kind: 'run',
    shard,
    fence,
    envelope,
    remainingMs: Number(remainingMs),
    sent: Number(sent),
    cancelled: cancel !== '',
    seq: Number(seq),
    held: toHeld(micro, tokens),
    rates: toRates(rates),
    promptTokens: Number(promptTokens),
    now: Number(now),
  };
}

/** The body may be older than the code. */
export function readEnvelope(body: string): RequestEnvelope | UnreadableError {
  try {
    return parseEnvelope(body);
  } catch (error) {
    if (error instanceof UnreadableError) return error;
    throw error;
  }
}
