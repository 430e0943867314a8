import type { Script, ScriptReply } from './scripts.ts';
import { CALL_MS, inTime } from './time-limits.ts';

/** Reserved for the reply's way back: it would come too late for what Redis does after that. */
const REPLY_MARGIN_MS = 100;

/**
 * Keeps what replies have shown of the clocks of the shards' servers: how far each is ahead of this process's monotonic clock
 * (`performance.now`).
 */
export type ShardClocks = ReturnType<typeof createShardClocks>;

export function createShardClocks() {
  const ahead = new Map<number, number>();
  return {
    /** The server's time at a moment of this process's clock. Undefined: no reply of the shard has shown it yet. */
    at(shard: number, moment: number): number | undefined {
      const by = ahead.get(shard);
      return by === undefined ? undefined : Math.round(moment + by);
    },
    /** The server's clock showed `shown` at some moment between `sentAt` and `receivedAt`. */
    learn(shard: number, shown: number, sentAt: number, receivedAt: number): void {
      // Corrected only as far as it is certainly wrong: a slow reply says little, but drift or a new master is noticed.
      const most = shown - sentAt;
      ahead.set(shard, Math.max(shown - receivedAt, Math.min(most, ahead.get(shard) ?? most)));
    },
  };
}

/** The server's time in a reply. `isLate`: it was past the time in the script's last argument. */
export interface TimedReply {
  isLate: boolean;
  now: number;
}

/** Calls the script on keys of a shard. */
export type TimelyScript = (shard: number, ...call: Parameters<Script>) => Promise<ScriptReply>;

/**
 * Makes a script do nothing once its caller has stopped waiting for Redis. A server that stalled runs the calls in its
 * sockets later, and a worker may get a request before it can be voided. The script's last argument is the time until
 * which its caller waits, by the server's clock ('' while that is unknown). Clocks may differ: if the server's clock was
 * set or another server took over, the refusal contains its time, and the call is sent again.
 */
export function withDeadline(
  script: Script,
  read: (reply: ScriptReply) => TimedReply,
  clocks: ShardClocks,
): TimelyScript {
  async function send(until: number, [shard, keys, args]: Parameters<TimelyScript>): Promise<ScriptReply> {
    const sentAt = performance.now();
    const reply = await script(keys, [...args, clocks.at(shard, until - REPLY_MARGIN_MS) ?? '']);
    const { isLate, now } = read(reply);
    const receivedAt = performance.now();
    clocks.learn(shard, now, sentAt, receivedAt);
    if (!isLate) return reply;
    if (receivedAt >= until - REPLY_MARGIN_MS) throw new Error('The call reached Redis too late');
    return send(until, [shard, keys, args]);
  }

  return (...call) => inTime(send(performance.now() + CALL_MS, call));
}
