import type { ServerResponse } from 'node:http';
import { resetConnection } from './http-io.ts';
import type { ReplyHead, Usage } from './openai-format.ts';
import { usageOf } from './openai-format.ts';
import type { Answer } from './plan-answer.ts';
import type { FailureMode, Settings } from './settings.ts';
import type { CallBook } from './stats.ts';

/** One call whose answer has been decided but not sent. */
export interface Reply {
  res: ServerResponse;
  head: ReplyHead;
  answer: Answer;
  promptTokens: number;
  failure: FailureMode;
  settings: Settings;
  book: CallBook;
}

/** How long a reset waits after the last bytes, so that a reader that is awake gets them. */
export const RESET_PAUSE_MS = 10;

/** The usage that the caller gets; undefined: none. */
export function reportedUsage({ failure, promptTokens }: Reply, completionTokens: number): Usage | undefined {
  if (failure === 'no_usage') return undefined;
  return failure === 'zero_usage' ? usageOf(0, 0) : usageOf(promptTokens, completionTokens);
}

/** Whether a failure breaks the answer off; other failures only change the content of a regular answer. */
export function breaksOff(failure: FailureMode): failure is 'reset' | 'stall' | 'truncate' | 'malformed' {
  return failure === 'reset' || failure === 'stall' || failure === 'truncate' || failure === 'malformed';
}

/** Leaves the caller without a status line. A stalled call, and its book, stay open until the caller leaves. */
export function failBeforeHead({ res, failure, book }: Reply): void {
  if (failure === 'stall') return;
  book.end('failed');
  if (failure === 'reset') resetConnection(res);
  else res.destroy();
}
