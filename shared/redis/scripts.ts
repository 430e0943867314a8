import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';

import type { RedisClient } from './connection.ts';
import { retryWhileRefused } from './retry-refused.ts';
import { inTime } from './time-limits.ts';

/** A definition of a shared part, function or value, from its comment to its last line. */
const DEFINITION = /^((?:--.*\n)*)local (?:function (\w+)\(.*\n(?:.*\n)*?end$|(\w+) = (?:\{\n(?:.*\n)*?\}$|.*$))/gm;
/** A comment that begins with this line marks a function that few calls of a script need. */
const SELDOM = '-- @seldom\n';
const SELDOM_FUNCTION = /^(-- @seldom\n(?:--.*\n)*local function \w+\(.*\n(?:.*\n)*?end\n)/m;

interface Piece {
  text: string;
  isSeldom: boolean;
}

/** Without comments, whose words are not names. */
const toPiece = (text: string): Piece => ({
  text: text.replaceAll(/^ *--.*\n/gm, ''),
  isSeldom: text.startsWith(SELDOM),
});

/**
 * Puts before a script what it uses of the shared parts. Each call of a script creates all its functions anew. So what only
 * a function marked `@seldom` uses is defined inside of it, and created only if it is called
 * (docs/benchmarks/performance-log.md).
 */
export function linkParts(parts: readonly string[], body: string): string {
  const kept = body.split(SELDOM_FUNCTION).map(toPiece);
  // From the last definition to the first: what uses a definition stands after it, and is in `kept` already.
  for (const [text, , ofFunction, ofValue] of [...parts.join('\n').matchAll(DEFINITION)].reverse()) {
    const name = new RegExp(`(?<!')\\b${ofFunction ?? ofValue ?? ''}\\b(?!')`);
    const [user, ...others] = kept.filter((piece) => name.test(piece.text));
    if (user?.isSeldom === true && others.length === 0) {
      user.text = user.text.replace(/^local function .*\n/m, (head) => `${head}${toPiece(text).text}\n`);
    } else if (user !== undefined) {
      kept.unshift(toPiece(`${text}\n`));
    }
  }
  return kept.map(({ text }) => text).join('');
}

/** A reply of a script: Redis has no other types. */
export type ScriptReply = number | string | null | ScriptReply[];

type ScriptArgument = string | number | Buffer;

/** Runs one Lua script; all its keys carry one shard's hash tag. */
export type Script = (keys: readonly string[], args: readonly ScriptArgument[]) => Promise<ScriptReply>;

/** The folders of the scripts. A script's name is unique in both. */
const FOLDERS = ['../requests/lua', 'stores/lua'];

function source(name: string): string {
  const files = FOLDERS.map((folder) => new URL(`./${folder}/${name}.lua`, import.meta.url));
  const file = files.find((candidate) => existsSync(candidate));
  if (file === undefined) throw new Error(`There is no Redis script ${name}`);
  return readFileSync(file, 'utf8');
}

/**
 * Scripts that add something new: a full Redis refuses them before their first command. All others are let through, as
 * they end requests, move them on or only read: so a full Redis gets room again.
 */
const REFUSED_WHEN_FULL = new Set(['admit', 'enqueue', 'requeue', 'restore-answer', 'bring-key']);

/** Scripts that only read: a server that refuses writes runs them, too. */
const READING = new Set(['of-tenant', 'place', 'read-account', 'read-states']);

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
  let texts = loaded.get(client);
  if (texts === undefined) {
    const all = new Set<string>();
    client.on('ready', () => {
      all.forEach(send);
    });
    loaded.set(client, all);
    texts = all;
  }
  if (texts.has(lua)) return;
  texts.add(lua);
  if (client.status === 'ready') send(lua);
}

/** Linked texts, because a process defines most scripts several times: for each client and shard. */
const linked = new Map<string, string>();

function link(name: string, parts: readonly string[]): string {
  const files = [...parts, name].join(' ');
  const text = linked.get(files) ?? linkParts(parts.map(source), source(name));
  linked.set(files, text);
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
 * Makes a script callable on `client`. Its text is `<subject>/lua/<name>.lua`, preceded by what it uses of the shared
 * `parts` (link-parts.ts). On a cluster it publishes to sharded channels, so that messages stay on the shard's node.
 */
export function defineScript(client: RedisClient, name: string, parts: readonly string[] = []): Script {
  const publish = client.isCluster ? 'SPUBLISH' : 'PUBLISH';
  const text = link(name, parts).replaceAll('@PUBLISH@', publish);
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
export function defineTimedScript(client: RedisClient, name: string, parts: readonly string[]): Script {
  const script = defineScript(client, name, parts);
  return (keys, args) => inTime(script(keys, args));
}
