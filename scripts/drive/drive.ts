import { randomBytes } from 'node:crypto';

import { createChatClient } from './chat-client.ts';
import type { ChatClient, TurnRecord } from './chat-client.ts';
import type { Conversation } from './conversations.ts';
import { renderSummary } from './summary.ts';

export interface Drive {
  conversations: readonly Conversation[];
  /** Base URL, `/platform/v1` included. */
  url: string;
  key: string;
  isStreamed: (index: number) => boolean;
  concurrency: number;
  model?: string | undefined;
  signal: AbortSignal;
  print: (line: string) => void;
}

export interface Driven {
  records: TurnRecord[];
  /** The requests that the conversations have. */
  planned: number;
}

/** The interval of the lines that say how far the drive is. */
const PROGRESS_MS = 5_000;

export const isAnswered = ({ records, planned }: Driven): boolean =>
  records.length === planned && records.every(({ error }) => error === undefined);

/** Runs a whole drive. Prints its progress and a summary. */
export async function drive(options: Drive): Promise<Driven> {
  const { conversations, url, print } = options;
  await fetch(new URL('/health/live', url)).catch((cause: unknown) => {
    const how = 'start the service with npm start, or name its address with --url';
    throw new Error(`Nothing answers at ${url}: ${how}.`, { cause });
  });
  const planned = conversations.reduce((sum, { turns }) => sum + turns.length, 0);
  const startedAt = performance.now();
  const records = await send(options, planned);
  print(renderSummary(records, planned, performance.now() - startedAt));
  return { records, planned };
}

/**
 * Sends the conversations, several at once, each one turn by turn: the service remembers what was said by entity. After
 * a failed turn, the rest of its conversation is skipped. Stops early on `signal`.
 */
async function send(options: Drive, planned: number): Promise<TurnRecord[]> {
  const { conversations, concurrency, signal, print } = options;
  let waits = 0;
  const records: TurnRecord[] = [];
  const progress = setInterval(() => {
    const failed = records.filter(({ error }) => error !== undefined).length;
    print(`drive | ${records.length} of ${planned} requests, ${failed} failed, ${waits} times told to wait (429)`);
  }, PROGRESS_MS);
  const client = createChatClient(options.url, options.key);
  const runId = randomBytes(6).toString('hex');
  const queue = conversations.entries();
  const takeTurns = async () => {
    for (const [index, conversation] of queue) {
      const turns = converse(client, options, { conversation, index, runId }, () => {
        waits += 1;
      });
      for await (const record of turns) records.push(record);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(concurrency, conversations.length) }, takeTurns));
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(progress);
  }
  return records;
}

async function* converse(
  client: ChatClient,
  { isStreamed, model, signal }: Drive,
  { conversation: { id, turns }, index, runId }: { conversation: Conversation; index: number; runId: string },
  onWait: () => void,
): AsyncGenerator<TurnRecord> {
  // docs/spec.md#chat-request allows 256 characters; the position keeps two lines with the same id apart.
  const entityId = `drive-${runId}-${index + 1}-${id}`.slice(0, 256);
  const stream = isStreamed(index);
  for (const [before, messages] of turns.entries()) {
    const outcome = await client.send({ messages, entityId, stream, model }, signal, onWait);
    yield { ...outcome, conversation: id, entityId, turn: before + 1, stream, submitted: messages };
    if (outcome.error !== undefined) return;
  }
}
