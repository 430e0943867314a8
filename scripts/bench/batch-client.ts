import { setTimeout as pause } from 'node:timers/promises';

import type { Parley } from './systems.ts';

export interface BatchState {
  id: string;
  status: string;
  request_counts: { total: number; completed: number; failed: number };
}

/** `/batches` as a tenant uses it. */
export interface BatchClient {
  /** A batch of so many lines with one short question each. */
  submit(lines: number): Promise<BatchState>;
  find(id: string): Promise<BatchState>;
  cancel(id: string): Promise<void>;
  /** Waits until `check` holds. */
  until(id: string, check: (state: BatchState) => boolean): Promise<BatchState>;
}

const POLL_MS = 100;

function toLine(index: number): string {
  const content = `Question ${index}: how does a river find its way from a spring to the sea?`;
  return JSON.stringify({ custom_id: `line-${index}`, body: { messages: [{ role: 'user', content }] } });
}

export function createBatchClient({ url, headers }: Pick<Parley, 'url' | 'headers'>, signal: AbortSignal): BatchClient {
  async function call(path: string, init: RequestInit = {}): Promise<BatchState> {
    const response = await fetch(`${url}/batches${path}`, {
      ...init,
      headers: { ...headers, 'Content-Type': 'application/x-ndjson' },
      signal,
    });
    if (!response.ok) throw new Error(`/batches${path} answered ${response.status}: ${await response.text()}`);
    // As docs/batches.md describes it.
    return (await response.json()) as BatchState;
  }
  const find = (id: string) => call(`/${id}`);

  return {
    find,
    submit: (lines) =>
      call('', { method: 'POST', body: Array.from({ length: lines }, (_, at) => toLine(at)).join('\n') }),
    async cancel(id) {
      await call(`/${id}/cancel`, { method: 'POST' });
    },
    async until(id, check) {
      for (;;) {
        const state = await find(id);
        if (check(state)) return state;
        await pause(POLL_MS, undefined, { signal });
      }
    },
  };
}
