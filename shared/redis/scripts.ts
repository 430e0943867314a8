/**
 * Runs the Lua scripts in `shared/requests/lua` and `stores/lua`. Each says in its header what it does, and with which
 * keys and arguments. Its text stands behind what it uses of the shared parts.
 *
 * - A script is one step: Redis runs all of it or nothing, also in its append-only file.
 * - A script that is sent again after a lost reply does nothing a second time. The exception is `take`: it takes again,
 *   and the worker gives back all that it took.
 * - In a full Redis (`noeviction`, `maxmemory` reached) scripts that bring something new are refused whole, and all
 *   others run. A transaction is refused even if its commands free memory, so settlement and sweep use none. Of
 *   BullMQ's own scripts those that end a job run; those that renew a lock do not. So a lost lock means nothing: the
 *   lease of a request decides who owns it.
 * - Scripts that only read also run on a server that refuses writes.
 */
import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { Cluster } from 'ioredis';

import { TIERS } from '../contracts/chat-request.ts';
import { BULLMQ } from '../queue/bullmq-layout.ts';
import { slotOf } from './cluster-slots.ts';
import type { RedisClient } from './connection.ts';
import { inTime, CALL_MS } from './time-limits.ts';

/** A reply of a script: Redis has no other types. */
export type ScriptReply = number | string | null | ScriptReply[];

type ScriptArgument = string | number | Buffer;

/** Runs one Lua script; all its keys carry one shard's hash tag. */
export type Script = (keys: readonly string[], args: readonly ScriptArgument[]) => Promise<ScriptReply>;

/** The folders of the scripts. A script's name is unique in both. */
const FOLDERS = ['../requests/lua', 'stores/lua'];

/** The text of a file, without its comments: their words are no names. */
function source(name: string): string {
  const files = FOLDERS.map((folder) => new URL(`./${folder}/${name}.lua`, import.meta.url));
  const file = files.find((candidate) => existsSync(candidate));
  if (file === undefined) throw new Error(`There is no Redis script ${name}`);
  return readFileSync(file, 'utf8').replaceAll(/^ *--.*\n/gm, '');
}

/**
 * Scripts that add something new: a full Redis refuses them before their first command. All others are let through, as
 * they end requests, move them on or only read: so a full Redis gets room again.
 */
const REFUSED_WHEN_FULL = new Set(['admit', 'enqueue', 'requeue', 'restore-answer', 'import-key']);

/** Scripts that only read: a server that refuses writes runs them, too. */
const READING = new Set(['scan-records', 'place', 'read-states']);

/** The first line of a script, which tells Redis whether to run it when memory is used up, or writes are refused. */
function firstLine(name: string): string {
  if (READING.has(name)) return '#!lua flags=allow-oom,no-writes';
  return REFUSED_WHEN_FULL.has(name) ? '#!lua' : '#!lua flags=allow-oom';
}

const loaded = new WeakMap<RedisClient, Set<string>>();

/**
 * Loads a script on each connection before its first call, which would otherwise carry the text. Nodes of a cluster get the
 * text with that call.
 */
function load(client: RedisClient, lua: string): void {
  if (client.isCluster) return;
  const send = (text: string) => {
    client.script('LOAD', text).catch(() => undefined);
  };
  let known = loaded.get(client);
  if (known === undefined) {
    const all = new Set<string>();
    client.on('ready', () => {
      all.forEach(send);
    });
    loaded.set(client, all);
    known = all;
  }
  if (known.has(lua)) return;
  known.add(lua);
  if (client.status === 'ready') send(lua);
}

/** The files that only define functions and values, which all scripts can use. No two may define the same name. */
const PARTS = ['account', 'answers', 'claiming', 'drop', 'fair-queue', 'restore-request', 'retries', 'windows'];
/** A definition, to its last line. */
const DEFINITION = /^local (?:function (\w+)\(.*\n(?:.*\n)*?end$|([\w, ]+) = (?:\{\n(?:.*\n)*?\}$|.*$))/gm;

/** The definitions of all parts by their names. */
const definitions = new Map<string, string>();
for (const [text, ofFunction, ofValues = ''] of PARTS.map(source).join('\n').matchAll(DEFINITION))
  for (const name of ofFunction === undefined ? ofValues.split(', ') : [ofFunction]) definitions.set(name, text);

/**
 * Puts before a text the definitions that it uses, and those that they use. Others would cost: each call of a script makes all
 * its functions anew, and Lua's collector walks those of all scripts.
 */
function link(text: string, linked = new Set<string>()): string {
  let before = '';
  for (const [word] of text.matchAll(/\w+/g)) {
    const definition = definitions.get(word);
    if (definition === undefined || linked.has(definition)) continue;
    linked.add(definition);
    before += link(definition, linked);
  }
  return `${before}${text}\n`;
}

/** By their names, because a process defines most scripts several times: for each client and shard. */
const texts = new Map<string, string>();

function textOf(name: string): string {
  const text = texts.get(name) ?? link(source(name));
  texts.set(name, text);
  return text;
}

/** Joins short texts to one argument for `struct.unpack('ss…')`, which costs Redis a third of an argument for each. */
export function textsOf(texts: readonly (string | number)[]): string {
  return `${texts.join('\0')}\0`;
}

/**
 * Whether Redis refused a command because of what its keys hold: the server works, and nothing but these keys is at fault.
 */
export function isBadKey(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === 'ReplyError' &&
    /^(?:WRONGTYPE|ERR (?!max number of clients))/.test(error.message)
  );
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/**
 * Errors of a server that takes no writes for the moment, before it does anything: too few replicas have them, its disk is
 * full, a script of somebody else runs, or the keys are on their way to another server.
 */
const REFUSED = /^(?:NOREPLICAS|MISCONF|MASTERDOWN|LOADING|BUSY|TRYAGAIN) /;

const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 1_000;

/** Whether a server refused a call before it did anything: the same call may pass in a moment. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && REFUSED.test(error.message);
}

/** Calls of one client that wait for a server to take writes again, by the slot of their keys; a single server has one. */
interface Waiting {
  slots: Map<number, { calls: number; since: number }>;
  onTaken: ((slot: number, refusedMs: number) => void)[];
}

const waiting = new WeakMap<RedisClient, Waiting>();

function waitingOf(client: RedisClient): Waiting {
  const known = waiting.get(client) ?? { slots: new Map(), onTaken: [] };
  waiting.set(client, known);
  return known;
}

/** Whether calls wait because a server refuses them; `slot` undefined: of whichever slot. */
export function isRefusing(client: RedisClient, slot: number | undefined): boolean {
  const { slots } = waitingOf(client);
  return slot === undefined ? slots.size > 0 : slots.has(slot);
}

/** Calls back when nothing of a slot waits any more: what was refused has been done. */
export function onTaken(client: RedisClient, listener: (slot: number, refusedMs: number) => void): void {
  waitingOf(client).onTaken.push(listener);
}

/** Whether a client waits for Redis: a worker's does, an ingress's callers get 503. */
function isPatient(client: RedisClient): boolean {
  const options = client instanceof Cluster ? client.options.redisOptions : client.options;
  return options?.maxRetriesPerRequest === null;
}

async function untilTaken<Reply>(
  client: RedisClient,
  slot: number,
  error: unknown,
  send: () => Promise<Reply>,
): Promise<Reply> {
  if (!isRefusal(error) || !isPatient(client)) throw error;
  const { slots, onTaken } = waitingOf(client);
  const state = slots.get(slot) ?? { calls: 0, since: performance.now() };
  slots.set(slot, state);
  state.calls += 1;
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * 2)) {
      await pause(pauseMs);
      try {
        return await send();
      } catch (next) {
        if (!isRefusal(next)) throw next;
      }
    }
  } finally {
    state.calls -= 1;
    if (state.calls === 0) {
      slots.delete(slot);
      for (const listener of onTaken) listener(slot, performance.now() - state.since);
    }
  }
}

/**
 * Sends a call about `key` again for as long as its server refuses it, as ioredis does while the server is away: a worker then
 * loses nothing that it runs.
 */
function retryWhileRefused<Reply>(client: RedisClient, key: string, send: () => Promise<Reply>): Promise<Reply> {
  return send().catch((error: unknown) => untilTaken(client, client instanceof Cluster ? slotOf(key) : 0, error, send));
}

/** Puts names in for what stands between two `@` in a script. */
function withNames(text: string, names: Readonly<Record<string, string>>): string {
  return text.replaceAll(/@(\w+)@/g, (_, key: string) => {
    const name = names[key];
    if (name === undefined) throw new Error(`A Redis script asks for @${key}@, which has no name`);
    return name;
  });
}

/**
 * Makes a script callable on `client`. Its text is `lua/<name>.lua`, behind what it uses of the shared parts. On a cluster
 * it publishes to sharded channels, so that messages stay on the shard's node.
 */
export function defineScript(client: RedisClient, name: string): Script {
  const names = { TIERS: `'${TIERS.join("', '")}'`, PUBLISH: client.isCluster ? 'SPUBLISH' : 'PUBLISH' };
  const text = withNames(textOf(name), { ...BULLMQ, ...names });
  const lua = `${firstLine(name)}\n${text}`;
  const sha = hash('sha1', lua);
  load(client, lua);
  const run: Script = async (keys, args) => {
    try {
      // Redis has no other replies.
      return (await client.evalsha(sha, keys.length, ...keys, ...args)) as ScriptReply;
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return (await client.eval(lua, keys.length, ...keys, ...args)) as ScriptReply;
    }
  };
  return (keys, args) => retryWhileRefused(client, keys[0] ?? '', () => run(keys, args));
}

/** The same for callers that wait: a call without an answer fails soon. */
export function defineTimedScript(client: RedisClient, name: string): Script {
  const script = defineScript(client, name);
  return (keys, args) => inTime(script(keys, args));
}

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
type TimelyScript = (shard: number, ...call: Parameters<Script>) => Promise<ScriptReply>;

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
