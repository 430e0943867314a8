import { setTimeout as pause } from 'node:timers/promises';

import { callJson } from '../../harness/http.ts';
import type { LoadGenerator } from '../load.ts';
import { send } from './send.ts';
import type { Reply, SendOptions } from './send.ts';
import type { Account, Ask, StatefulSystem, Statement } from './system.ts';

/** `smoke` only shows that a measure works; its figures are not a measurement. */
export type Size = 'smoke' | 'full';

/** What a measure works with: one system, and the provider that all systems share. */
export interface Lab {
  system: StatefulSystem;
  provider: Provider;
  /** One for each of the two ingresses; separate processes. */
  generators: readonly LoadGenerator[];
  size: Size;
  signal: AbortSignal;
  log: (line: string) => void;
}

/** The provider's own counts, with which a system's books must agree. */
interface ProviderCounts {
  calls: number;
  tokens: number;
}

export interface Provider {
  /** Settings that are not given return to their defaults. */
  set(settings: Record<string, unknown>): Promise<void>;
  /** Counts since the last `set`. */
  counts(): Promise<ProviderCounts>;
}

export function createProvider(url: string): Provider {
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await callJson(method, `${url}${path}`, body === undefined ? {} : { body });
    if (answer.status !== 200) throw new Error(`The simulated provider answered ${path} with ${answer.status}.`);
    return answer.body;
  };
  return {
    async set(settings) {
      await call('DELETE', '/settings');
      await call('POST', '/settings', settings);
      await call('POST', '/stats/reset');
    },
    async counts() {
      const counts = await call('GET', '/stats?detail=0');
      const of = (name: string) => Number(counts[name]);
      return { calls: of('calls'), tokens: of('prompt_tokens') + of('completion_tokens') };
    },
  };
}

/** What a call needs besides the question. */
type Sending = Omit<SendOptions, 'requestIdHeader'> & {
  account: Account;
  /** Selects the ingress: they take requests in turn. */
  index?: number;
};

export function urlOf({ urls }: StatefulSystem, index: number): string {
  return urls[index % urls.length] ?? '';
}

/** Never rejects. */
export function ask({ system }: Lab, { account, index = 0, ...options }: Sending, what: Ask): Promise<Reply> {
  const { requestIdHeader } = system;
  return send(urlOf(system, index), system.ask(account, what), { ...options, requestIdHeader });
}

export function range<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

export function percentile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.ceil(values.length * share) - 1] ?? NaN;
}

const STATEMENT_POLL_MS = 500;

/** The statement once the books have stopped changing. */
export async function settledStatement({ system, signal }: Lab, account: Account): Promise<Statement> {
  const { statement, bookSeconds } = system;
  if (statement === undefined) throw new Error(`${system.name} has no books.`);
  let last = await statement(account);
  let stableSince = performance.now();
  while (performance.now() - stableSince < bookSeconds * 1_000) {
    await pause(STATEMENT_POLL_MS, undefined, { signal });
    const next = await statement(account);
    if (JSON.stringify(next) !== JSON.stringify(last)) stableSince = performance.now();
    last = next;
  }
  return last;
}

/** Waits until a request is answered; returns how many failed before. */
export async function untilServed(lab: Lab, account: Account, limitMs = 120_000): Promise<number> {
  const deadline = performance.now() + limitMs;
  for (let failed = 0; ; failed += 1) {
    const reply = await ask(lab, { account, index: failed, timeoutMs: 5_000 }, { content: 'Hello', stream: false });
    if (reply.isWhole) return failed;
    if (performance.now() > deadline) {
      throw new Error(`${lab.system.name} answered no request for ${limitMs / 1_000} s (status ${reply.status}).`);
    }
    await pause(100, undefined, { signal: lab.signal });
  }
}
