import { setTimeout as pause } from 'node:timers/promises';

export interface BatchState {
  id: string;
  status: string;
  request_counts: { total: number; completed: number; failed: number };
  waiting_for: string | null;
}

interface BatchResult {
  custom_id: string;
  request_id: string;
  response?: { id: string; choices?: { message: { content: string | null } }[] };
  error?: { code: string };
}

/** The number of lines that have a result. */
export function endedOf({ request_counts: { completed, failed } }: BatchState): number {
  return completed + failed;
}

/** `/batches` from a tenant's point of view. */
export interface BatchClient {
  /** Submits a batch of this many lines with one short question each, or of these lines. */
  submit(lines: number | readonly object[]): Promise<BatchState>;
  find(id: string): Promise<BatchState>;
  cancel(id: string): Promise<void>;
  results(id: string): Promise<BatchResult[]>;
  /** Waits until `check` holds. */
  until(id: string, check: (state: BatchState) => boolean): Promise<BatchState>;
}

const POLL_MS = 100;

function toLine(index: number): string {
  const content = `Question ${index}: how does a river find its way from a spring to the sea?`;
  return JSON.stringify({ custom_id: `line-${index}`, body: { messages: [{ role: 'user', content }] } });
}

export interface BatchCaller {
  /** Base URL, `/platform/v1` included; evaluated at every call, because servers come and go. */
  url: () => string;
  key: string;
  signal: AbortSignal;
}

export function createBatchClient({ url, key, signal }: BatchCaller): BatchClient {
  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/x-ndjson' };
    const response = await fetch(`${url()}/batches${path}`, { ...init, headers, signal });
    if (!response.ok) throw new Error(`/batches${path} answered ${response.status}: ${await response.text()}`);
    return response;
  }

  async function call(path: string, init?: RequestInit): Promise<BatchState> {
    // As docs/guide/batches.md describes it.
    return (await (await send(path, init)).json()) as BatchState;
  }
  const find = (id: string) => call(`/${id}`);

  return {
    find,
    submit(lines) {
      const rows = typeof lines === 'number' ? Array.from({ length: lines }, (_, at) => toLine(at)) : lines;
      const body = rows.map((row) => (typeof row === 'string' ? row : JSON.stringify(row))).join('\n');
      return call('', { method: 'POST', body });
    },
    async cancel(id) {
      await call(`/${id}/cancel`, { method: 'POST' });
    },
    async results(id) {
      const text = await (await send(`/${id}/results`)).text();
      const lines = text.split('\n').filter((line) => line !== '');
      // As above.
      return lines.map((line) => JSON.parse(line) as BatchResult);
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
