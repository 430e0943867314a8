import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { ofTheMachine } from '../../scripts/harness/program.ts';

/** What a client is asked for (answer.mjs). */
export interface Ask {
  call: 'complete' | 'stream' | 'json' | 'tools' | 'toolStream' | 'schema' | 'image' | 'embed';
  apiKey: string;
  model: 'mobius' | 'oloid' | 'embedding';
  content: string;
  /** The reader wants no more after the first text. */
  leaves?: boolean;
  /** The client's own time limit for one try. */
  timeoutMs?: number;
}

/** What a client made of the answer. */
export interface Outcome {
  text: string;
  finish?: string | null;
  error?: { name: string; status?: number; message: string };
}

export interface Client {
  ask(ask: Ask): Promise<Outcome>;
  stop(): Promise<void>;
}

/** Starts a client's program, `openai.mjs` or `openai_client.py` with its arguments, which answers any number of asks. */
export function startClient(program: string, baseURL: string): Client {
  const [file = '', ...args] = program.split(' ');
  const python = process.env['TEST_CLIENTS_PYTHON'];
  if (python === undefined) throw new Error('TEST_CLIENTS_PYTHON is not set: run npm run test:clients.');
  const child = spawn(file.endsWith('.py') ? python : process.execPath, [join(import.meta.dirname, file), ...args], {
    env: { ...ofTheMachine(), PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  const waiting = new Map<number, { resolve: (outcome: Outcome) => void; reject: (error: Error) => void }>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    // Some clients print lines of their own.
    if (!line.startsWith('{"id":')) return;
    const { id, ...outcome } = JSON.parse(line) as Outcome & { id: number };
    waiting.get(id)?.resolve(outcome);
    waiting.delete(id);
  });
  child.once('close', () => {
    for (const { reject } of waiting.values()) reject(new Error(`${program} ended: ${complaints}`));
  });
  const closed = new Promise((resolve) => child.once('close', resolve));
  let last = 0;
  return {
    ask: (ask) =>
      new Promise((resolve, reject) => {
        const id = (last += 1);
        waiting.set(id, { resolve, reject });
        child.stdin.write(`${JSON.stringify({ id, baseURL, ...ask })}\n`);
      }),
    async stop() {
      child.kill();
      await closed;
    },
  };
}
