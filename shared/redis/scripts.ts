/**
 * Runs the Lua scripts in `shared/requests/lua` and `stores/lua`; each header says what a script does, with its keys
 * and arguments. The parts that it uses stand before its text.
 *
 * - Redis runs all of a script or nothing, also in its append-only file.
 * - A script sent again after a lost reply does nothing more. Only `take` takes again, and the worker gives all of it
 *   back.
 * - A full Redis (`noeviction`, `maxmemory` reached) refuses scripts that bring something new, whole, and runs the
 *   others. It refuses a transaction even if its commands free memory, so settlement and sweep use none. Of BullMQ's
 *   own scripts those that end a job run; those that renew a lock do not. So a lost lock means nothing: a request's
 *   lease decides who owns it.
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

/** Redis has no other replies. */
export type ScriptReply = number | string | null | ScriptReply[];

type ScriptArgument = string | number | Buffer;

/** All keys carry one shard's hash tag. */
export type Script = (keys: readonly string[], args: readonly ScriptArgument[]) => Promise<ScriptReply>;

/** A script's name is unique in both folders. */
const FOLDERS = ['../requests/lua', 'stores/lua'];

/** Leaves out comments: their words are no names. */
function source(name: string): string {
  const files = FOLDERS.map((folder) => new URL(`./${folder}/${name}.lua`, import.meta.url));
  const file = files.find((candidate) => existsSync(candidate));
  if (file === undefined) throw new Error(`There is no Redis script ${name}`);
  return readFileSync(file, 'utf8').replaceAll(/^ *--.*\n/gm, '');
}

/**
 * These add something new, so a full Redis refuses them before their first command. All others run, since they end
 * requests, move them on or only read: so a full Redis gets room again.
 */
const REFUSED_WHEN_FULL = new Set(['admit', 'enqueue', 'requeue', 'restore-answer', 'import-key']);

/** A server that refuses writes still runs these. */
const READING = new Set(['scan-records', 'place', 'read-states']);

/** A script's first line tells Redis whether to run it when memory is used up, or writes are refused. */
function firstLine(name: string): string {
  if (READING.has(name)) return '#!lua flags=allow-oom,no-writes';
  return REFUSED_WHEN_FULL.has(name) ? '#!lua' : '#!lua flags=allow-oom';
}

const loaded = new WeakMap<RedisClient, Set<string>>();

/** Loads a script before its first call on a connection, which would carry the text; on a cluster it does. */
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

/** Parts only define functions and values for all scripts. No two may define the same name. */
const PARTS = ['account', 'answers', 'claiming', 'drop', 'fair-queue', 'restore-request', 'retries', 'windows'];
const DEFINITION = /^local (?:function (\w+)\(.*\n(?:.*\n)*?end$|([\w, ]+) = (?:\{\n(?:.*\n)*?\}$|.*$))/gm;

const definitions = new Map<string, string>();
for (const [text, ofFunction, ofValues = ''] of PARTS.map(source).join('\n').matchAll(DEFINITION))
  for (const name of ofFunction === undefined ? ofValues.split(', ') : [ofFunction]) definitions.set(name, text);

/**
 * Puts only the definitions that a text needs, directly or not, before it: each call of a script makes all its
 * functions anew, and Lua's collector walks those of all scripts.
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

/** Cached by name, because a process defines most scripts for each client and shard. */
const texts = new Map<string, string>();

function textOf(name: string): string {
  const text = texts.get(name) ?? link(source(name));
  texts.set(name, text);
  return text;
}

/** One argument for `struct.unpack('ss…')` costs Redis a third of an argument for each text. */
export function textsOf(texts: readonly (string | number)[]): string {
  return `${texts.join('\0')}\0`;
}

/** Redis refused a command because of its keys' values: only these keys are at fault. */
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
 * A server that takes no writes for now says so before it does anything: too few replicas have them, its disk is full,
 * another's script runs, or the keys move to another server.
 */
const REFUSED = /^(?:NOREPLICAS|MISCONF|MASTERDOWN|LOADING|BUSY|TRYAGAIN) /;

const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 1_000;

/** A server refused the call before it did anything: the same call may pass in a moment. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && REFUSED.test(error.message);
}

/** Calls waiting for a server to take writes again, by slot; a single server has one slot. */
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

export function isRefusing(client: RedisClient, slot: number | undefined): boolean {
  const { slots } = waitingOf(client);
  return slot === undefined ? slots.size > 0 : slots.has(slot);
}

/** Calls back once no refused call of a slot waits any more. */
export function onTaken(client: RedisClient, listener: (slot: number, refusedMs: number) => void): void {
  waitingOf(client).onTaken.push(listener);
}

/** A worker waits for Redis; an ingress's callers get 503. */
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

/** Repeats a refused call, as ioredis does while a server is away: so a worker loses nothing that it runs. */
function retryWhileRefused<Reply>(client: RedisClient, key: string, send: () => Promise<Reply>): Promise<Reply> {
  return send().catch((error: unknown) => untilTaken(client, client instanceof Cluster ? slotOf(key) : 0, error, send));
}

/** Replaces names between two `@`. */
function withNames(text: string, names: Readonly<Record<string, string>>): string {
  return text.replaceAll(/@(\w+)@/g, (_, key: string) => {
    const name = names[key];
    if (name === undefined) throw new Error(`A Redis script asks for @${key}@, which has no name`);
    return name;
  });
}

/** Uses `lua/<name>.lua` behind its parts. On a cluster, sharded channels keep messages on the shard's node. */
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

/** For callers that wait: a call without an answer fails soon. */
export function defineTimedScript(client: RedisClient, name: string): Script {
  const script = defineScript(client, name);
  return (keys, args) => inTime(script(keys, args));
}

/** Reserved for the reply's way back: Redis must have finished by then. */
const REPLY_MARGIN_MS = 100;

/** Keeps each server clock's lead over this process's `performance.now`, by shard, as replies show it. */
export type ShardClocks = ReturnType<typeof createShardClocks>;

export function createShardClocks() {
  const ahead = new Map<number, number>();
  return {
    /** Converts a moment of this process's clock. Undefined: no reply of the shard has shown its time yet. */
    at(shard: number, moment: number): number | undefined {
      const by = ahead.get(shard);
      return by === undefined ? undefined : Math.round(moment + by);
    },
    /** The server's clock showed `shown` between `sentAt` and `receivedAt`. */
    learn(shard: number, shown: number, sentAt: number, receivedAt: number): void {
      // Corrects only what is certainly wrong: a slow reply says little, but drift or a new master shows.
      const most = shown - sentAt;
      ahead.set(shard, Math.max(shown - receivedAt, Math.min(most, ahead.get(shard) ?? most)));
    },
  };
}

/** `isLate`: the server's time was past the script's last argument. */
export interface TimedReply {
  isLate: boolean;
  now: number;
}

type TimelyScript = (shard: number, ...call: Parameters<Script>) => Promise<ScriptReply>;

/**
 * Makes a script do nothing once its caller no longer waits: a stalled server runs calls in its sockets later, and a
 * worker might get a request before it can be voided. The last argument is the deadline by the server's clock ('' while
 * unknown). If the clock was set or another server took over, the refusal has its time, and the call is sent again.
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
