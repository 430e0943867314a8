import type { StreamEntry } from '../../shared/contracts/events.ts';
import { toErrorDetail, toErrorObject } from '../../shared/errors/error-body.ts';
import type { ErrorObject } from '../../shared/errors/error-body.ts';
import { completeAnswer } from './answer.ts';
import type { AnswerHead } from './answer.ts';
import { errorOf } from './terminal-error.ts';

/** How a request ended, as its look-up shows it: with an answer, as JSON text, or with an error. */
export type Outcome = { responseJson: string } | { error: ErrorObject };

/** `entries`: the whole stream so far. Undefined: it has not ended. */
export function outcomeOf(head: AnswerHead, entries: readonly StreamEntry[]): Outcome | undefined {
  const terminal = entries.at(-1)?.terminal;
  if (terminal === undefined) return undefined;
  const literals = entries.flatMap((entry) => entry.deltas);
  const error = errorOf(terminal, literals.length > 0);
  return error === undefined
    ? { responseJson: completeAnswer(head, literals, terminal) }
    : { error: toErrorObject(toErrorDetail(error), head.requestId) };
}
