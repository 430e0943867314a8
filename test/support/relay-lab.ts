import { createRelayHub } from '../../api/relay/hub.ts';
import type { Reader, ReadFrom, RelayHub } from '../../api/relay/hub.ts';
import type { StreamEntry, Terminal } from '../../shared/contracts/events.ts';
import { eventsOf } from '../../shared/contracts/events.ts';
import { createChunkChannel } from '../../shared/requests/channels.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import { createRecordStore } from '../../shared/requests/record-store.ts';
import type { RequestRecord } from '../../shared/requests/record-store.ts';
import type { DeliveryRef } from '../../shared/requests/delivery.ts';
import { createStreamReader } from '../../shared/requests/answers.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { createEventBus } from '../../shared/lifecycle/event-bus.ts';
import { createRecordingLog } from './recording-log.ts';
import { endingOf, FAILED, openRequestLab, RETENTION_MS, SHARD } from './request-lab.ts';
import type { LabRequest, RequestLab } from './request-lab.ts';
import { openTestRedis } from './stores.ts';

/** A running request whose events the test writes itself, as a worker would. */
interface RunningRequest {
  requestId: string;
  /** The worker's delivery. */
  ref: DeliveryRef;
  /** Appends one entry and publishes it. */
  append(...deltas: string[]): Promise<void>;
  /** Appends an entry whose publication nobody hears. */
  appendUnheard(...deltas: string[]): Promise<void>;
  finish(text?: string, retentionMs?: number): Promise<void>;
  /** Makes this ingress a reader, as a call that resumes does. */
  attach(): Promise<RequestRecord | undefined>;
  /** Nobody reads any more. */
  leave(): Promise<void>;
  /** Ends it in an error without text. */
  fail(): Promise<void>;
}

/** What a reader was given. */
export interface Heard {
  reader: Reader;
  entries: StreamEntry[];
  /** The texts of the increments, one by one. */
  texts(): string[];
}

/** One ingress's relay over real Redis, and requests for it to read. */
export interface RelayLab {
  lab: RequestLab;
  hub: RelayHub;
  subscriber: RedisClient;
  /** Breaks the subscriber's connection, and nobody else's. */
  killSubscriber(): Promise<void>;
  start(): Promise<RunningRequest>;
  read(requestId: string, from?: ReadFrom): Heard;
  close(): Promise<void>;
}

/** `polls` false: time stands still for the hub, so it reads no stream for having heard nothing for a while. */
export async function openRelayLab({ polls = true } = {}): Promise<RelayLab> {
  const lab = await openRequestLab();
  const subscriber = await openTestRedis('subscriber');
  subscriber.on('error', () => undefined);
  const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  const hub = createRelayHub({
    channel: createChunkChannel(subscriber, lab.keyspace, newId('ing')),
    streams: createStreamReader(lab.redis, lab.keyspace),
    records,
    now: polls ? Date.now : () => 0,
    events: createEventBus(() => undefined),
    log: createRecordingLog(),
  });
  await hub.ensureShard(SHARD);
  const channel = hub.channelOf(SHARD);

  async function start(): Promise<RunningRequest> {
    const request: LabRequest = await lab.admit();
    const { requestId } = request;
    await lab.run(request, 1);
    const attach = () => records.attach(request.principal, requestId, channel);
    await attach();
    const record = lab.keys.record(requestId);
    let seq = 0;
    async function append(...deltas: string[]): Promise<void> {
      seq += deltas.length;
      await lab.requests.append(request.ref(1), seq, deltas);
    }
    return {
      requestId,
      ref: request.ref(1),
      append,
      attach,
      async leave() {
        const readers = (await lab.redis.hkeys(record)).filter((field) => field.startsWith('reader:'));
        await lab.redis.hdel(record, ...readers);
      },
      async appendUnheard(...deltas) {
        await lab.redis.hset(record, 'channels', '');
        await append(...deltas);
        await lab.redis.hset(record, 'channels', channel);
      },
      async finish(text = '', retentionMs = RETENTION_MS) {
        const ending = endingOf(request, text, { prompt: 1, completion: 1 });
        await lab.requests.finish(request.ref(1), seq, { ...ending, retentionMs });
      },
      async fail() {
        await lab.requests.finish(request.ref(1), seq, FAILED);
      },
    };
  }

  return {
    lab,
    hub,
    subscriber,
    async killSubscriber() {
      // Other test files have subscribers on the same server, so not CLIENT KILL TYPE pubsub.
      const id = await subscriber.call('CLIENT', 'ID');
      await lab.redis.call('CLIENT', 'KILL', 'ID', Number(id));
    },
    start,
    read(requestId, from) {
      const entries: StreamEntry[] = [];
      const reader = hub.open(SHARD, requestId, (entry) => entries.push(entry), from);
      return {
        reader,
        entries,
        texts: () => entries.flatMap(({ deltas }) => deltas.map((literal) => String(JSON.parse(literal)))),
      };
    },
    async close() {
      hub.close();
      subscriber.disconnect();
      await lab.close();
    },
  };
}

/** The sequence numbers that entries stand for, one by one. */
export function sequenceOf(entries: readonly StreamEntry[]): number[] {
  return entries.flatMap(({ lastSeq, deltas, terminal }) => {
    const count = deltas.length + countOf(terminal);
    return Array.from({ length: count }, (_, index) => lastSeq - count + 1 + index);
  });
}

function countOf(terminal: Terminal | undefined): number {
  return terminal === undefined ? 0 : eventsOf(terminal);
}
