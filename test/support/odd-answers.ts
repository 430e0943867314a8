import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';

import type { ServerResponse } from 'node:http';

import type { ProviderKind } from '../../shared/domain/routing.ts';

/** Both protocols say this, unless an answer is deformed. */
export const WHOLE_TEXT = 'hello odd world';
export const COUNTED = { promptTokens: 11, completionTokens: 7 };

export type Protocol = Exclude<ProviderKind, 'simulated'>;

/** One event of a stream, as it is written, and what a reader knows once it has come. */
export interface WireEvent {
  wire: string;
  gives?: 'text' | 'finish' | 'usage' | 'finish and usage';
}

const data = (value: object | string) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const named = (value: { type: string; [field: string]: unknown }) => `event: ${value.type}\n${data(value)}`;
const chunk = (delta: object, finish: string | null = null) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const delta = (text: string) => named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });

export const OPENAI_USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** A right stream of each protocol. */
export function streamOf(protocol: Protocol, finish = protocol === 'openai' ? 'stop' : 'end_turn'): WireEvent[] {
  if (protocol === 'openai') {
    return [
      { wire: data(chunk({ role: 'assistant', content: '' })) },
      { wire: data(chunk({ content: 'hello ' })) },
      { wire: data(chunk({ content: 'odd world' })), gives: 'text' },
      { wire: data(chunk({}, finish)), gives: 'finish' },
      { wire: data({ ...chunk({}), choices: [], usage: OPENAI_USAGE }), gives: 'usage' },
      { wire: data('[DONE]') },
    ];
  }
  const usage = { input_tokens: 11, output_tokens: 1 };
  return [
    { wire: named({ type: 'message_start', message: { type: 'message', role: 'assistant', usage } }) },
    { wire: named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) },
    { wire: delta('hello ') },
    { wire: delta('odd world'), gives: 'text' },
    { wire: named({ type: 'content_block_stop', index: 0 }) },
    {
      wire: named({ type: 'message_delta', delta: { stop_reason: finish }, usage: { output_tokens: 7 } }),
      gives: 'finish and usage',
    },
    { wire: named({ type: 'message_stop' }) },
  ];
}

/** A right document of each protocol. */
export function documentOf(protocol: Protocol, finish = protocol === 'openai' ? 'stop' : 'end_turn'): object {
  if (protocol === 'openai') {
    const message = { role: 'assistant', content: WHOLE_TEXT };
    return { object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish }], usage: OPENAI_USAGE };
  }
  return {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: WHOLE_TEXT }],
    stop_reason: finish,
    usage: { input_tokens: 11, output_tokens: 7 },
  };
}

type Bytes = string | Uint8Array;
export type EndOfBody = 'proper' | 'held' | 'cut' | 'reset';

export interface OddAnswer {
  status?: number;
  /** Written before the answer's own head, each in a segment of its own. */
  interim?: readonly string[];
  headers?: Readonly<Record<string, string>>;
  /** Each is one chunk of HTTP's. */
  body: readonly Bytes[];
  end?: EndOfBody;
}

const EVENTS_LABEL = 'text/event-stream';

export function oddStream(events: readonly WireEvent[], more: Partial<OddAnswer> = {}): OddAnswer {
  return { headers: { 'content-type': EVENTS_LABEL }, body: events.map(({ wire }) => wire), ...more };
}

export function oddDocument(document: object, more: Partial<OddAnswer> = {}): OddAnswer {
  return { headers: { 'content-type': 'application/json' }, body: [JSON.stringify(document)], ...more };
}

/** Writes exact bytes to the connection; Node.js would correct what is wrong with them. */
export async function writeOdd(res: ServerResponse, answer: OddAnswer): Promise<void> {
  const { status = 200, interim = [], headers = {}, body, end = 'proper' } = answer;
  const { socket } = res;
  if (socket === null) throw new Error('The connection is gone');
  const write = (bytes: Bytes) => new Promise<void>((resolve) => socket.write(bytes, () => setImmediate(resolve)));
  for (const head of interim) await write(head);
  const lines = Object.entries({ ...headers, 'transfer-encoding': 'chunked', connection: 'close' });
  await write(`HTTP/1.1 ${status} OK\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
  for (const part of body) {
    const bytes = Buffer.from(part);
    if (bytes.length === 0) continue;
    await write(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]));
  }
  if (end === 'proper') await write('0\r\n\r\n');
  if (end === 'cut' || end === 'proper') socket.end();
  if (end === 'reset') socket.resetAndDestroy();
}

const CODERS: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  deflate: deflateSync,
  'raw deflate': deflateRawSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
  ...Object.fromEntries(['Identity', '', 'utf-8', 'none'].map((name) => [name, Buffer.from])),
};
export const CODINGS = Object.keys(CODERS);

/** The same answer in a coding that nobody asked for. */
export function coded(answer: OddAnswer, coding: string): OddAnswer {
  const bytes = Buffer.concat(answer.body.map((part) => Buffer.from(part)));
  const code = CODERS[coding];
  if (code === undefined) throw new Error(`No coder for ${coding}`);
  const name = coding.replace('raw ', '');
  return { ...answer, headers: { ...answer.headers, 'content-encoding': name }, body: [code(bytes)] };
}

/** Events that say nothing: heartbeats, and what servers send where they have nothing to say. */
export const EMPTY_EVENTS: readonly string[] = [
  'data:\n\n',
  'data: \n\n',
  'data: null\n\n',
  'data: []\n\n',
  'data: "ping"\n\n',
  'data: keepalive\n\n',
  'data: 2024-05-01 10:00:00\n\n',
  'data: {}\n\n',
  'data: {"choices":null}\n\n',
  'data: {"choices":[]}\n\n',
  'data: {"error":{"message":"","type":"","param":"","code":null},"choices":[]}\n\n',
  'data: {"error":null}\n\n',
  'data: {"x_groq":{"id":"req_1"}}\n\n',
  'data: {"type":"ping"}\n\n',
  'event: ping\n\n',
  'event: ping\ndata: {"type":"ping"}\n\n',
  ': comment\n\n',
  '\n\n',
  'id: 7\n\n',
  'retry: 1000\n\n',
];
