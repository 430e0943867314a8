import type { ServerResponse } from 'node:http';
import { resetConnection } from './http-io.ts';
import type { ReplyHead, Usage } from './openai-format.ts';
import { usageOf } from './openai-format.ts';
import type { Answer } from './plan-answer.ts';
import type { FailureMode, Settings } from './settings.ts';
import type { CallBook } from './stats.ts';

/** One call whose answer is decided and is to be sent. */
export interface Reply {
  res: ServerResponse;
  head: ReplyHead;
  answer: Answer;
  promptTokens: number;
  failure: FailureMode;
  settings: Settings;
  book: CallBook;
}

/** A reset waits this long after the last bytes, so that a reader that is not asleep has them. */
export const RESET_PAUSE_MS = 10;

/** What the caller is told about usage; undefined: nothing. */
export function reportedUsage({ failure, promptTokens }: Reply, completionTokens: number): Usage | undefined {
  if (failure === 'no_usage') return undefined;
  return failure === 'zero_usage' ? usageOf(0, 0) : usageOf(promptTokens, completionTokens);
}

/** The failures that break an answer off; the others only change what a regular answer says. */
export function breaksOff(failure: FailureMode): failure is 'reset' | 'stall' | 'truncate' | 'malformed' {
  return failure === 'reset' || failure === 'stall' || failure === 'truncate' || failure === 'malformed';
}

/** Leaves the caller without a status line. A stalled call is open until the caller goes, and so is its book. */
export function failBeforeHead({ res, failure, book }: Reply): void {
  if (failure === 'stall') return;
  book.end('failed');
  if (failure === 'reset') resetConnection(res);
  else res.destroy();
}
