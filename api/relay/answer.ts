import type { Terminal, Usage } from '../../shared/contracts/events.ts';
import { toErrorObject } from '../../shared/errors/error-body.ts';

/** What a reader must know of a request to write its answer. */
export interface AnswerHead {
  requestId: string;
  /** Unix seconds. */
  created: number;
  model: string;
  /** The caller's own object as JSON text. */
  metadataJson?: string;
}

function toUsage({ promptTokens, completionTokens }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

function headOf({ requestId, created, model }: AnswerHead, object: string): string {
  return `{"id":"${requestId}","object":"${object}","created":${created},"model":"${model}"`;
}

function metadataOf({ metadataJson }: AnswerHead): string {
  return metadataJson === undefined ? '' : `,"metadata":${metadataJson}`;
}

/**
 * Writes the events of a stream as SSE (interface.md section 6.1). The text depends on head, sequence number and entry
 * only, so every ingress writes the same bytes. `deltas` are JSON string literals and are not decoded.
 */
export function createSseWriter(head: AnswerHead) {
  const start = `data: ${headOf(head, 'chat.completion.chunk')},"choices":[{"index":0,"delta":{`;
  const event = (seq: number, data: string) => `id: ${seq}\n${data}\n\n`;

  return {
    delta(seq: number, literal: string): string {
      const role = seq === 1 ? '"role":"assistant",' : '';
      return event(seq, `${start}${role}"content":${literal}},"finish_reason":null}]}`);
    },

    /** The final chunk, then `[DONE]`; a failed stream ends without it (contract.md section 3). */
    end(seq: number, { finishReason, usage, error }: Terminal): string {
      const failure = error === undefined ? '' : `,"error":${JSON.stringify(toErrorObject(error, head.requestId))}`;
      const chunk = `${start}},"finish_reason":"${finishReason}"}],"usage":${JSON.stringify(toUsage(usage))}${metadataOf(head)}${failure}}`;
      return event(seq, chunk) + (finishReason === 'error' ? '' : event(seq + 1, 'data: [DONE]'));
    },
  };
}

export const SSE_PING = ': ping\n\n';

/** The JSON text of a complete answer (interface.md section 2.2), joined from literals without decoding them. */
export function completeAnswer(head: AnswerHead, literals: readonly string[], terminal: Terminal): string {
  const content = literals.map((literal) => literal.slice(1, -1)).join('');
  const choice = `{"index":0,"message":{"role":"assistant","content":"${content}"},"finish_reason":"${terminal.finishReason}"}`;
  const usage = JSON.stringify(toUsage(terminal.usage));
  return `${headOf(head, 'chat.completion')},"choices":[${choice}],"usage":${usage}${metadataOf(head)}}`;
}
