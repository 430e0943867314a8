import { encodeEntry } from '../contracts/events.ts';
import type { Increment } from '../contracts/events.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript, textsOf } from '../redis/scripts.ts';
import type { ScriptReply } from '../redis/scripts.ts';
import type { DeliveryRef } from './delivery.ts';

/** Increments of one request's answer. */
export interface Append {
  ref: DeliveryRef;
  /** Sequence number of the last of `deltas`. */
  lastSeq: number;
  deltas: readonly Increment[];
  /** Tokens of what the provider was asked, in case another process has to end the request. */
  promptTokens: number;
}

interface Waiting extends Append {
  resolve: (outcome: ScriptReply) => void;
  reject: (error: unknown) => void;
}

/**
 * How long text waits for that of other requests. A call costs more than what it carries: with this wait, 200 live streams
 * of 50 chunks per second make 200 calls per second, not 10,000.
 */
const GATHER_MS = 5;
/** The most requests in one call, which must not hold up Redis: it takes less than a millisecond. */
const REQUESTS_MAX = 64;

/**
 * Appends the text of all running requests of a shard in common calls (append.lua). A call leaves at the end of the event
 * loop's turn, or 5 ms after the one before; a request's first text does not wait. Resolves with what the script returns
 * for this request.
 */
export function createCommonAppend(client: RedisClient, keyspace: Keyspace): (text: Append) => Promise<ScriptReply> {
  const append = defineScript(client, 'append');
  const gathers = new Map<number, (text: Waiting) => void>();

  async function send(shard: number, texts: readonly Waiting[]): Promise<void> {
    const keys = keyspace.shard(shard);
    try {
      const outcomes = await append(
        texts.flatMap(({ ref: { requestId } }) => [keys.record(requestId), keys.stream(requestId)]),
        texts.flatMap(({ ref: { requestId, fence, owner = '' }, lastSeq, deltas, promptTokens }) => [
          textsOf([requestId, fence, lastSeq, promptTokens, owner, lastSeq - deltas.length]),
          encodeEntry(deltas),
        ]),
      );
      if (!Array.isArray(outcomes)) throw new Error('The script append gave no list');
      for (const [at, { resolve, reject }] of texts.entries()) {
        const outcome = outcomes[at] ?? null;
        if (typeof outcome === 'string' && outcome.startsWith('failed')) reject(new Error(`Redis ${outcome}`));
        else resolve(outcome);
      }
    } catch (error) {
      for (const { reject } of texts) reject(error);
    }
  }

  function openGather(shard: number): (text: Waiting) => void {
    let waiting: Waiting[] = [];
    let sentAt = -Infinity;
    let timer: NodeJS.Timeout | undefined;
    let flushing: NodeJS.Immediate | undefined;

    function flush(): void {
      clearTimeout(timer);
      timer = undefined;
      flushing = undefined;
      sentAt = performance.now();
      const texts = waiting;
      waiting = [];
      for (let at = 0; at < texts.length; at += REQUESTS_MAX) void send(shard, texts.slice(at, at + REQUESTS_MAX));
    }

    return (text) => {
      waiting.push(text);
      const isFirst = text.lastSeq === text.deltas.length;
      const waitMs = sentAt + GATHER_MS - performance.now();
      if (isFirst || waitMs <= 0) flushing ??= setImmediate(flush);
      else timer ??= setTimeout(flush, waitMs);
    };
  }

  return (text) =>
    new Promise((resolve, reject) => {
      const { shard } = text.ref;
      const gather = gathers.get(shard) ?? openGather(shard);
      gathers.set(shard, gather);
      gather({ ...text, resolve, reject });
    });
}
