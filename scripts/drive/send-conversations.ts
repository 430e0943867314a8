import type { ChatClient, ChatOutcome } from './chat-client.ts';
import type { Conversation, Message } from './read-conversations.ts';

/** One request of a drive and its outcome. */
export interface TurnRecord extends ChatOutcome {
  conversation: string;
  entityId: string;
  /** From 1 to `turns`. */
  turn: number;
  turns: number;
  stream: boolean;
  submitted: readonly Message[];
}

export interface DriveOptions {
  conversations: readonly Conversation[];
  client: ChatClient;
  /** Distinguishes this drive's entities from those of any other. */
  runId: string;
  /** Whether a conversation, given its position in the file, is streamed. */
  isStreamed: (index: number) => boolean;
  model: string | undefined;
  /** How many conversations run at once. */
  concurrency: number;
  onTurn: (record: TurnRecord) => void;
  /** Called for every 429 that is tried again. */
  onWait: () => void;
  signal: AbortSignal;
}

/**
 * Sends the conversations, several at once, each one turn by turn: the service remembers what was said by entity. After
 * a failed turn, the rest of its conversation is skipped. Stops early on `signal`.
 */
export async function runDrive(options: DriveOptions): Promise<TurnRecord[]> {
  const { conversations, concurrency, onTurn, signal } = options;
  const records: TurnRecord[] = [];
  const queue = conversations.entries();

  async function takeTurns(): Promise<void> {
    for (const [index, conversation] of queue) {
      for await (const record of converse(options, conversation, index)) {
        records.push(record);
        onTurn(record);
      }
    }
  }

  const lanes = Array.from({ length: Math.min(concurrency, conversations.length) }, takeTurns);
  await Promise.all(lanes).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return records;
}

async function* converse(
  { client, runId, isStreamed, model, signal, onWait }: DriveOptions,
  { id, turns }: Conversation,
  index: number,
): AsyncGenerator<TurnRecord> {
  const entityId = entityIdFor(runId, index, id);
  const stream = isStreamed(index);
  for (const [before, messages] of turns.entries()) {
    const outcome = await client.send({ messages, entityId, stream, model }, signal, onWait);
    const place = { conversation: id, entityId, turn: before + 1, turns: turns.length };
    yield { ...outcome, ...place, stream, submitted: messages };
    if (outcome.error !== undefined) return;
  }
}

/**
 * docs/spec.md#chat-request allows 256 characters; the position in the file keeps two lines with the same id
 * apart.
 */
function entityIdFor(runId: string, index: number, id: string): string {
  return `drive-${runId}-${index + 1}-${id}`.slice(0, 256);
}
