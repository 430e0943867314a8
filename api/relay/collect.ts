import type { Response } from 'express';

import type { StreamEntry, Terminal } from '../../shared/contracts/events.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { completeAnswer } from './answer.ts';
import type { AnswerHead } from './answer.ts';
import type { RelayHub } from './hub.ts';
import { DEADLINE_MARGIN_MS, errorOf, relayTimeout } from './outcome.ts';

interface Collected {
  literals: string[];
  terminal: Terminal;
}

export interface Collector {
  /** Resolves with the JSON text of the complete answer; throws what ended the request instead. */
  answer(head: AnswerHead): Promise<string>;
  close(): void;
  /** The request was not admitted. */
  abandon(): void;
}

export interface CollectOptions {
  shard: number;
  requestId: string;
  /** The stream may have begun. */
  existing?: boolean;
  timeoutMs: number;
  /** Aborts when this ingress can wait no longer: the request goes on without it. */
  stopping: AbortSignal;
}

/** Gathers a request's whole stream. Open it before the request is enqueued, so that nothing is missed. */
export function openCollector(hub: RelayHub, res: Response, options: CollectOptions): Collector {
  const { shard, requestId, existing, timeoutMs, stopping } = options;
  const literals: string[] = [];
  const collected = Promise.withResolvers<Collected>();
  collected.promise.catch(() => undefined);
  const onEntry = (entry: StreamEntry) => {
    literals.push(...entry.deltas);
    if (entry.terminal !== undefined) collected.resolve({ literals, terminal: entry.terminal });
  };
  const reader = hub.open(shard, requestId, onEntry, { existing, isAwaited: existing !== true });
  const timer = setTimeout(() => {
    collected.reject(relayTimeout());
  }, timeoutMs + DEADLINE_MARGIN_MS);
  const onStopping = () => {
    collected.reject(
      new ServiceError(
        'model_unavailable',
        'This server restarts and can wait no longer; GET /chat/{request_id} has the answer when it is ready.',
        { retryAfterSeconds: 1 },
      ),
    );
  };
  stopping.addEventListener('abort', onStopping, { once: true });
  const stop = () => {
    stopping.removeEventListener('abort', onStopping);
    clearTimeout(timer);
  };
  const close = () => {
    stop();
    reader.close();
  };
  res.once('close', close);
  // A client that left while its key was looked up has had its event.
  if (res.closed) close();

  return {
    close,
    abandon() {
      stop();
      reader.abandon();
    },
    async answer(head) {
      reader.confirm();
      const { terminal } = await collected.promise;
      const error = errorOf(terminal, literals.length > 0);
      if (error !== undefined) throw error;
      return completeAnswer(head, literals, terminal);
    },
  };
}
