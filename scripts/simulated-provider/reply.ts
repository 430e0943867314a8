import type { ServerResponse } from 'node:http';
import { resetConnection } from './http-io.ts';
import type { ChatRequest } from './chat-request.ts';
import type { Answer, Delta } from './plan-answer.ts';
import type { FailureMode, Settings } from './settings.ts';
import type { CallBook } from './stats.ts';
import type { Usage, UsageShape } from './usage-shape.ts';
import { HIDDEN_TOKENS, toldUsage, usageOf } from './usage-shape.ts';

/** Every part of one reply repeats these. */
interface ReplyHead {
  id: string;
  createdSeconds: number;
  model: string;
}

/** The events of one stream, each a complete SSE event. */
export interface StreamEvents {
  begin(answers: readonly Answer[]): string;
  delta(delta: Delta, index: number): string;
  /** With the usage as it is told; undefined: not at all. */
  end(answers: readonly Answer[], usage: object | undefined): string;
}

/** The form in which a protocol asks and answers. */
export interface Dialect {
  /** Throws RequestError. */
  read(body: unknown): ChatRequest;
  idPrefix: string;
  /** Tokens of reasoning and audio are told apart. */
  tellsAllKinds: boolean;
  usage(usage: Usage): object;
  complete(reply: Reply, usage: object | undefined): string;
  events(reply: Reply, includeUsage: boolean): StreamEvents;
}

/** One call whose answer has been decided but not sent. */
export interface Reply {
  res: ServerResponse;
  dialect: Dialect;
  head: ReplyHead;
  /** One for each choice. */
  answers: readonly Answer[];
  promptTokens: number;
  usageShape: UsageShape;
  failure: FailureMode;
  settings: Settings;
  book: CallBook;
}

/** How long a reset waits after the last bytes, so that a reader that is awake gets them. */
export const RESET_PAUSE_MS = 10;

/** The tokens that the answer takes beside those that are sent. */
const hiddenTokens = ({ usageShape }: Pick<Reply, 'usageShape'>): number =>
  usageShape === 'reasoning' ? HIDDEN_TOKENS : 0;

/** Books the details of the usage, and returns it as the caller gets it; undefined: not at all. */
export function bookUsage(reply: Reply, tokensSent: number): object | undefined {
  const { answers, promptTokens, usageShape, book, dialect } = reply;
  const hidden = hiddenTokens(reply);
  const reasoning = dialect.tellsAllKinds
    ? answers.reduce((sum, { reasoningTokens }) => sum + reasoningTokens, hidden)
    : 0;
  const usage = usageOf({ prompt: promptTokens, completion: tokensSent + hidden, reasoning }, usageShape);
  if (hidden > 0) book.text(hidden);
  book.details(usage);
  return toldUsage(dialect.usage(usage), usageShape);
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
