import type { Script, ScriptReply } from './scripts.ts';
import { CALL_MS, inTime } from './timing.ts';

/** The answer takes so long to be here at most, mostly: what is done later is not heard of in time. */
const WAY_BACK_MS = 100;

/**
 * The clocks of the shards' servers, as their answers tell: by how much each is ahead of this process's own, which no
 * setting of the time moves (`performance.now`).
 */
export interface ShardClocks {
  /** The server's time at a moment of this process's own; undefined: the shard has told none yet. */
  at(shard: number, moment: number): number | undefined;
  /** What the server's clock showed at some moment between `sentAt` and `receivedAt`. */
  learn(shard: number, shown: number, sentAt: number, receivedAt: number): void;
}

export function createShardClocks(): ShardClocks {
  const ahead = new Map<number, number>();
  return {
    at(shard, moment) {
      const by = ahead.get(shard);
      return by === undefined ? undefined : Math.round(moment + by);
    },
    learn(shard, shown, sentAt, receivedAt) {
      // Only what is surely wrong is corrected: a slow answer says little, while drift and another master's clock show.
      const most = shown - sentAt;
      ahead.set(shard, Math.max(shown - receivedAt, Math.min(most, ahead.get(shard) ?? most)));
    },
  };
}

/** A reply of the script, with the server's time; `late`: it was past the time that its last argument said. */
export interface TimedReply {
  isLate: boolean;
  now: number;
}

/** As the script, and of the shard whose keys these are. */
export type TimelyScript = (shard: number, ...call: Parameters<Script>) => Promise<ScriptReply>;

/**
 * A script that does nothing once its caller was told that it got no answer: a stalled server runs what it finds in its
 * sockets, and a worker has the request before it can be taken back. The script gets the time until which its caller
 * waits as one more argument, by the server's clock ('' while that is unknown). Clocks may differ by as much as they
 * like: what is refused although its caller waits, because the server's clock was set or another server took over, is
 * sent again by the time that the refusal told.
 */
export function timely(script: Script, read: (reply: ScriptReply) => TimedReply, clocks: ShardClocks): TimelyScript {
  async function send(until: number, [shard, keys, args]: Parameters<TimelyScript>): Promise<ScriptReply> {
    const sentAt = performance.now();
    const reply = await script(keys, [...args, clocks.at(shard, until - WAY_BACK_MS) ?? '']);
    const { isLate, now } = read(reply);
    const receivedAt = performance.now();
    clocks.learn(shard, now, sentAt, receivedAt);
    if (!isLate) return reply;
    if (receivedAt >= until - WAY_BACK_MS) throw new Error('The call reached Redis too late');
    return send(until, [shard, keys, args]);
  }

  return (...call) => inTime(send(performance.now() + CALL_MS, call));
}
