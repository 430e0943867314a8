import { createParser } from 'eventsource-parser';

import { specFor } from './run-case.ts';
import type { System } from './systems.ts';

export interface Probe {
  /** Chunks with text in the stream. */
  chunks: number;
  streamText: string;
  completeText: string;
}

interface Choice {
  message?: { content: string };
  delta?: { content?: string };
}

/** Sends one request in each mode and reads the whole answer, to check that equal work is compared. */
export async function probe(system: System): Promise<Probe> {
  const texts: string[] = [];
  const parser = createParser({
    onEvent({ data }) {
      const text = data === '[DONE]' ? undefined : choiceOf(data).delta?.content;
      if (text !== undefined) texts.push(text);
    },
  });
  parser.feed(await send(system, 'stream'));
  const complete = choiceOf(await send(system, 'complete'));
  return { chunks: texts.length, streamText: texts.join(''), completeText: complete.message?.content ?? '' };
}

async function send(system: System, mode: 'complete' | 'stream'): Promise<string> {
  const { url, headers, bodies } = specFor(system, { mode, clients: 1 }, { requests: 1 });
  const response = await fetch(url, { method: 'POST', headers, body: bodies[0] ?? '' });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${system.name} answered ${response.status}: ${text}`);
  return text;
}

function choiceOf(json: string): Choice {
  // docs/spec.md#chat-completion, docs/spec.md#stream; a server that sends something else makes this fail.
  const { choices } = JSON.parse(json) as { choices: Choice[] };
  return choices[0] ?? {};
}
