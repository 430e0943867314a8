import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';

import mongoose from 'mongoose';

import { freePort } from '../../scripts/embedded/ports.ts';

/**
 * What becomes of a connection. `reset`: it breaks, and so does each new one. `refuse`: it breaks, and nobody listens any
 * more. `silent`: it stays and new ones are taken, and nothing passes; with `pass`, what came meanwhile does.
 */
export type ProxyMode = 'pass' | 'reset' | 'refuse' | 'silent';

/** Stands between the service and a server, breaks the path between them, and counts what is asked. */
export type TcpProxy = Awaited<ReturnType<typeof openTcpProxy>>;

/** MongoDB says so instead of doing a command. */
interface CommandError {
  code: number;
  codeName: string;
}

/** `text`: the command's document as JSON. */
type FailCommand = (command: string, text: string) => CommandError | undefined;

/** `reply`: what came since the last call of its connection; `call`: what was asked since the reply before. */
type CutReply = (reply: string, call: string) => boolean;

/** Where the first message ends, which may be behind the bytes: at least as many are needed. */
type ReadMessage = (bytes: Buffer) => { end: number; isCommand: boolean };

/** The layout of MongoDB's messages: github.com/mongodb/specifications, source/message/OP_MSG.md. */
const { deserialize, serialize } = mongoose.mongo.BSON;
const HEADER_BYTES = 16;
const OP_MSG = 2013;
/** Of an OP_MSG: its flags, and the byte that tells the kind of its first section. */
const BODY_AT = HEADER_BYTES + 5;
/** Behind the body's length and the type of its first element, whose name is the command's. */
const NAME_AT = BODY_AT + 5;
const HEARTBEATS: ReadonlySet<string> = new Set(['hello', 'isMaster', 'ismaster', 'ping', 'endSessions']);

const isCommandMessage = (message: Buffer) => message.readInt32LE(12) === OP_MSG && message[BODY_AT - 1] === 0;
const commandOf = (message: Buffer) => message.toString('latin1', NAME_AT, message.indexOf(0, NAME_AT));

const readMongo: ReadMessage = (bytes) => {
  const end = bytes.length < HEADER_BYTES ? HEADER_BYTES : bytes.readInt32LE(0);
  const isCommand = bytes.length >= end && end > NAME_AT && isCommandMessage(bytes);
  return { end, isCommand: isCommand && !HEARTBEATS.has(commandOf(bytes)) };
};

/** Redis's protocol: `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`. A script is one command, whatever it runs. */
const readRedis: ReadMessage = (bytes) => {
  let at = 0;
  const readNumber = () => {
    const lineEnd = bytes.indexOf('\r\n', at);
    const number = lineEnd === -1 ? NaN : Number(bytes.toString('latin1', at + 1, lineEnd));
    at = lineEnd + 2;
    return number;
  };
  // Without the end of a line nobody knows how many bytes are missing.
  const partial = { end: bytes.length + 1, isCommand: false };
  const count = readNumber();
  if (Number.isNaN(count)) return partial;
  for (let index = 0; index < count; index += 1) {
    const length = readNumber();
    if (Number.isNaN(length)) return partial;
    at += length + 2;
    if (at > bytes.length) return { end: at, isCommand: false };
  }
  return { end: at, isCommand: true };
};

const READERS: Record<string, ReadMessage> = { 'mongodb:': readMongo, 'redis:': readRedis };
const readAnything: ReadMessage = (bytes) => ({ end: bytes.length, isCommand: false });

/** Cuts a stream of bytes into messages; each waits until it is whole. */
function createSplitter(read: ReadMessage, onMessage: (message: Buffer, isCommand: boolean) => void) {
  let parts: Buffer[] = [];
  let have = 0;
  let need = 1;
  return (part: Buffer): void => {
    parts.push(part);
    have += part.length;
    if (have < need) return;
    let bytes = Buffer.concat(parts, have);
    need = 1;
    while (bytes.length >= need) {
      const { end, isCommand } = read(bytes);
      const isWhole = end <= bytes.length;
      if (isWhole) {
        onMessage(bytes.subarray(0, end), isCommand);
        bytes = bytes.subarray(end);
      }
      need = isWhole ? 1 : end;
    }
    parts = [bytes];
    have = bytes.length;
  };
}

function errorAnswer(message: Buffer, { code, codeName }: CommandError): Buffer {
  const body = serialize({ ok: 0, code, codeName, errmsg: `refused: ${codeName}` });
  const answer = Buffer.alloc(BODY_AT + body.length);
  answer.writeInt32LE(answer.length, 0);
  answer.writeInt32LE(message.readInt32LE(4), 8);
  answer.writeInt32LE(OP_MSG, 12);
  answer.set(body, BODY_AT);
  return answer;
}

/** A test's wishes for calls and replies, and what was seen of them. */
interface Rules {
  failCommand: FailCommand | undefined;
  cutReply: CutReply | undefined;
  failed: number;
  commands: number;
  bytesIn: number;
  bytesOut: number;
}

function failureOf(message: Buffer, { failCommand }: Rules): CommandError | undefined {
  if (failCommand === undefined || !isCommandMessage(message)) return undefined;
  const body = deserialize(message.subarray(BODY_AT, BODY_AT + message.readInt32LE(BODY_AT)));
  return failCommand(commandOf(message), JSON.stringify(body));
}

/** Passes on what comes between the two, within the rules. */
function join(client: Socket, upstream: Socket, read: ReadMessage, rules: Rules): void {
  const cut = () => {
    client.destroy();
    upstream.destroy();
  };
  for (const socket of [client, upstream]) socket.setNoDelay(true).on('error', cut).on('close', cut);
  let [call, reply] = ['', ''];
  const split = createSplitter(read, (message, isCommand) => {
    if (isCommand) rules.commands += 1;
    const failure = isCommand ? failureOf(message, rules) : undefined;
    if (failure === undefined) upstream.write(message);
    else {
      rules.failed += 1;
      client.write(errorAnswer(message, failure));
    }
  });
  client.on('data', (part: Buffer) => {
    rules.bytesIn += part.length;
    if (rules.cutReply !== undefined) [call, reply] = [(reply === '' ? call : '') + part.toString('latin1'), ''];
    upstream.cork();
    split(part);
    upstream.uncork();
  });
  upstream.on('data', (part: Buffer) => {
    rules.bytesOut += part.length;
    if (rules.cutReply !== undefined) reply += part.toString('latin1');
    if (rules.cutReply?.(reply, call) === true) cut();
    else client.write(part);
  });
}

/** `query`: added to the address that the proxy gives for itself. */
export async function openTcpProxy(serverUrl: string, query: Record<string, string> = {}) {
  const url = new URL(serverUrl);
  const targetPort = Number(url.port);
  const read = READERS[url.protocol] ?? readAnything;
  const rules: Rules = {
    ...{ failCommand: undefined, cutReply: undefined },
    ...{ failed: 0, commands: 0, bytesIn: 0, bytesOut: 0 },
  };
  const sockets = new Set<Socket>();
  /** Of clients that came in the silence. */
  const waiting = new Set<Socket>();
  let mode: ProxyMode = 'pass';

  function track(socket: Socket): Socket {
    sockets.add(socket);
    return socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
  }
  function pass(client: Socket): void {
    if (client.destroyed) return;
    join(client, track(connect(targetPort, '127.0.0.1')), read, rules);
    client.resume();
  }
  function breakAll(): void {
    for (const socket of sockets) socket.resetAndDestroy();
    waiting.clear();
  }

  const server = createServer({ pauseOnConnect: true }, (client) => {
    track(client);
    if (mode === 'reset') client.resetAndDestroy();
    else if (mode === 'silent') waiting.add(client);
    else pass(client);
  });
  // A port that stays reserved while the proxy refuses.
  const port = await freePort();
  const listen = () => server.listen(port, '127.0.0.1');
  await new Promise((resolve) => listen().once('listening', resolve));
  // An experiment ends its processes, and with them the connections; the proxy alone must not keep it running.
  server.unref();
  url.port = String(port);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);

  const apply: Record<ProxyMode, () => void> = {
    reset: breakAll,
    refuse() {
      breakAll();
      server.close();
    },
    silent() {
      for (const socket of sockets) socket.pause();
    },
    pass() {
      for (const socket of sockets) if (!waiting.has(socket)) socket.resume();
      for (const client of waiting) pass(client);
      waiting.clear();
    },
  };

  return {
    port,
    url: url.href.replace(/\/$/, ''),
    /** `of`: 'new' leaves open connections as they are. */
    set(next: ProxyMode, of: 'all' | 'new' = 'all'): void {
      if (mode === 'refuse' && next !== 'refuse') listen().unref();
      mode = next;
      if (of === 'all') apply[next]();
    },
    /** Breaks connections instead of passing on such replies: a command has happened, and its caller cannot know. */
    cutReplies(isCut: CutReply | undefined): void {
      rules.cutReply = isCut;
    },
    /** Cuts the next reply behind a call with this text. Resolves when that has happened. */
    cutNextReply: (behind = ''): Promise<void> =>
      new Promise((resolve) => {
        rules.cutReply = (_reply, call) => {
          if (!call.includes(behind)) return false;
          rules.cutReply = undefined;
          resolve();
          return true;
        };
      }),
    /** MongoDB answers, from then on, with an error of the server to the commands that have one: full, not allowed to. */
    failCommands(failCommand: FailCommand | undefined): void {
      rules.failCommand = failCommand;
    },
    /** Commands that were answered so. */
    failed: () => rules.failed,
    /** Commands since the start, without heartbeats. */
    commands: () => rules.commands,
    bytesIn: () => rules.bytesIn,
    bytesOut: () => rules.bytesOut,
    close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}
