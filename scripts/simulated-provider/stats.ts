import { putNewest } from '../../shared/domain/bounded-map.ts';
import type { Usage } from './usage-shape.ts';

const DETAILS = ['prompt_tokens_details', 'completion_tokens_details'] as const;
const REQUESTS_MAX = 50_000;
/** Messages are kept of the latest requests, so that a test can see what reached the provider. */
const RECEIVED_MAX = 2_000;
/** In prompt tokens of about 4 bytes, because 2,000 of the largest bodies would not fit into memory. */
const RECEIVED_TOKENS_MAX = 8 * 1024 * 1024;

/** Books one call; after `end`, nothing changes any more. */
export interface CallBook {
  /** Text was sent. The first text also books the prompt: a call that fails before any text costs nothing. */
  text(tokens: number): void;
  /** The kinds of the tokens that were booked. */
  details(usage: Usage): void;
  end(outcome: 'completed' | 'failed' | 'aborted'): void;
}

interface Call {
  /** The caller's `X-Request-Id`. */
  requestId: string | null;
  promptTokens: number;
  messages: readonly unknown[];
}

/** With the sums of the details of usage of completed answers, where there were some. */
interface Counts extends Pick<Usage, (typeof DETAILS)[number]> {
  calls: number;
  completed: number;
  failed: number;
  aborted: number;
  prompt_tokens: number;
  completion_tokens: number;
}

interface RequestReport extends Counts {
  /** The number of messages of the latest call. */
  messages_last: number;
}

export interface RequestDetail extends RequestReport {
  request_id: string;
  /** The messages of the latest call; null if forgotten. */
  messages: readonly unknown[] | null;
}

/** `calls` = `completed` + `failed` + `aborted` + calls in flight; `rejected` counts malformed requests, not calls. */
export interface StatsReport extends Counts {
  in_flight: number;
  rejected: number;
  moderations: number;
  /** The latest 50,000 request ids. */
  by_request?: Record<string, RequestReport>;
}

const noCounts = (): Counts => ({
  calls: 0,
  completed: 0,
  failed: 0,
  aborted: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
});
const noTotals = () => ({ ...noCounts(), rejected: 0, moderations: 0 });

/** The provider's own books, with which the ledger is compared. */
export function createStats() {
  const requests = new Map<string, RequestReport>();
  const received = new Map<string, Call>();
  let tokensReceived = 0;
  let totals = noTotals();
  let inFlight = 0;

  function forget(requestId: string): void {
    tokensReceived -= received.get(requestId)?.promptTokens ?? 0;
    received.delete(requestId);
  }

  function keep(requestId: string, call: Call): void {
    forget(requestId);
    received.set(requestId, call);
    tokensReceived += call.promptTokens;
    for (const oldest of received.keys()) {
      if (received.size <= RECEIVED_MAX && tokensReceived <= RECEIVED_TOKENS_MAX) return;
      forget(oldest);
    }
  }

  return {
    begin(call: Call): CallBook {
      const { requestId, promptTokens, messages } = call;
      inFlight += 1;
      const booked: Counts[] = [totals];
      if (requestId !== null) {
        const counts = requests.get(requestId) ?? { ...noCounts(), messages_last: 0 };
        counts.messages_last = messages.length;
        putNewest(requests, requestId, counts, REQUESTS_MAX);
        booked.push(counts);
        keep(requestId, call);
      }
      for (const counts of booked) counts.calls += 1;
      return openBook(booked, promptTokens, () => {
        inFlight -= 1;
      });
    },
    rejected() {
      totals.rejected += 1;
    },
    moderation() {
      totals.moderations += 1;
    },
    report({ detail }: { detail: boolean }): StatsReport {
      const report = { ...structuredClone(totals), in_flight: inFlight };
      return detail ? { ...report, by_request: structuredClone(Object.fromEntries(requests)) } : report;
    },
    request(requestId: string): RequestDetail | undefined {
      const counts = requests.get(requestId);
      if (counts === undefined) return undefined;
      const messages = received.get(requestId)?.messages ?? null;
      return { request_id: requestId, ...structuredClone(counts), messages };
    },
    /** Calls in flight stay in `in_flight`, but are counted nowhere else. */
    reset() {
      totals = noTotals();
      requests.clear();
      received.clear();
      tokensReceived = 0;
    },
  };
}
export type Stats = ReturnType<typeof createStats>;

function openBook(booked: readonly Counts[], promptTokens: number, onEnd: () => void): CallBook {
  let ended = false;
  let promptBooked = false;

  function bookText(tokens: number): void {
    const prompt = promptBooked ? 0 : promptTokens;
    promptBooked = true;
    for (const counts of booked) {
      counts.prompt_tokens += prompt;
      counts.completion_tokens += tokens;
    }
  }

  return {
    text(tokens) {
      if (!ended) bookText(tokens);
    },
    details(usage) {
      if (ended) return;
      for (const counts of booked) {
        for (const name of DETAILS) {
          for (const [kind, tokens] of Object.entries(usage[name] ?? {})) {
            const sums = (counts[name] ??= {});
            sums[kind] = (sums[kind] ?? 0) + tokens;
          }
        }
      }
    },
    end(outcome) {
      if (ended) return;
      ended = true;
      // A complete answer without text is billed for its prompt, as its usage says.
      if (outcome === 'completed' && !promptBooked) bookText(0);
      for (const counts of booked) counts[outcome] += 1;
      onEnd();
    },
  };
}
