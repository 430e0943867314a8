import { firstSeqOf, toWireUsage } from '../../shared/contracts/events.ts';
import type { StreamEntry, Terminal } from '../../shared/contracts/events.ts';
import type { QueuePlace } from '../../shared/infra/redis/requests/record-store.ts';
import { toErrorObject } from '../../shared/errors/error-body.ts';

/** The parts of a request that its answer contains. */
export interface AnswerHead {
  requestId: string;
  /** Unix seconds. */
  created: number;
  model: string;
  /** The caller's own object as JSON text. */
  metadataJson?: string;
}

/** The head of a request's answer: the same on every ingress and at any time. */
export function answerHead(request: {
  requestId: string;
  acceptedAt: number;
  tier: string;
  metadataJson?: string | undefined;
}): AnswerHead {
  const { requestId, acceptedAt, tier, metadataJson } = request;
  const head = { requestId, created: Math.floor(acceptedAt / 1000), model: tier };
  return metadataJson === undefined ? head : { ...head, metadataJson };
}

function headOf({ requestId, created, model }: AnswerHead, object: string): string {
  return `{"id":"${requestId}","object":"${object}","created":${created},"model":"${model}"`;
}

function metadataOf({ metadataJson }: AnswerHead): string {
  return metadataJson === undefined ? '' : `,"metadata":${metadataJson}`;
}

/**
 * Writes the events of a stream as SSE (docs/spec/interface.md section 6.1). The text depends only on head, sequence
 * number and entry, so every ingress writes the same bytes. `deltas` are JSON string literals and are not decoded.
 */
export function createSseWriter(head: AnswerHead) {
  const start = `data: ${headOf(head, 'chat.completion.chunk')},"choices":[{"index":0,"delta":{`;
  const event = (seq: number, data: string) => `id: ${seq}\n${data}\n\n`;

  function delta(seq: number, literal: string): string {
    const role = seq === 1 ? '"role":"assistant",' : '';
    return event(seq, `${start}${role}"content":${literal}},"finish_reason":null}]}`);
  }

  function finalChunk(seq: number, { finishReason, usage, error }: Terminal): string {
    const failure = error === undefined ? '' : `,"error":${JSON.stringify(toErrorObject(error, head.requestId))}`;
    const end = `"usage":${JSON.stringify(toWireUsage(usage))}${metadataOf(head)}${failure}}`;
    return event(seq, `${start}},"finish_reason":"${finishReason}"}],${end}`);
  }

  return {
    /**
     * The events of an entry from `fromSeq` on. A stream ends with the final chunk and then `[DONE]`; a failed one has
     * no `[DONE]` (docs/spec/contract.md section 3).
     */
    events(entry: StreamEntry, fromSeq: number): string {
      let seq = firstSeqOf(entry);
      let text = '';
      for (const literal of entry.deltas) {
        if (seq >= fromSeq) text += delta(seq, literal);
        seq += 1;
      }
      const { terminal } = entry;
      if (terminal === undefined) return text;
      if (seq >= fromSeq) text += finalChunk(seq, terminal);
      return terminal.finishReason === 'error' ? text : text + event(seq + 1, 'data: [DONE]');
    },
  };
}

export const SSE_PING = ': ping\n\n';

/** An SSE comment, which is not an event and has no number. */
export function ssePlace({ position, waitMs }: QueuePlace): string {
  return `: queue position=${position} wait=${toWaitSeconds(waitMs)}\n\n`;
}

/** Whole seconds as callers see them; at least 1. */
export function toWaitSeconds(waitMs: number): number {
  return Math.max(1, Math.round(waitMs / 1000));
}

/**
 * The JSON text of a complete answer (docs/spec/interface.md section 2.2), joined from literals without decoding them.
 */
export function completeAnswer(head: AnswerHead, literals: readonly string[], terminal: Terminal): string {
  const content = literals.map((literal) => literal.slice(1, -1)).join('');
  const choice = `{"index":0,"message":{"role":"assistant","content":"${content}"},"finish_reason":"${terminal.finishReason}"}`;
  const usage = JSON.stringify(toWireUsage(terminal.usage));
  return `${headOf(head, 'chat.completion')},"choices":[${choice}],"usage":${usage}${metadataOf(head)}}`;
}
