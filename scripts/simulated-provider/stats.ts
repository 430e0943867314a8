import { createBoundedMap } from './bounded-map.ts';
import { createReceivedMessages } from './received-messages.ts';
import type { Usage } from './usage-shape.ts';

const DETAILS = ['prompt_tokens_details', 'completion_tokens_details'] as const;
type Details = Pick<Usage, (typeof DETAILS)[number]>;

const REQUESTS_MAX = 50_000;

type Outcome = 'completed' | 'failed' | 'aborted';

interface Counts {
  calls: number;
  completed: number;
  failed: number;
  aborted: number;
  promptTokens: number;
  completionTokens: number;
  /** Of the answers that were completed. */
  details: Details;
}

interface RequestCounts extends Counts {
  messagesLast: number;
}

/** Books one call; after `end`, nothing changes any more. */
export interface CallBook {
  /** Text was sent. The first text also books the prompt: a call that fails before any text costs nothing. */
  text(tokens: number): void;
  /** The kinds of the tokens that were booked. */
  details(usage: Usage): void;
  end(outcome: Outcome): void;
}

interface Call {
  /** The caller's `X-Request-Id`. */
  requestId: string | null;
  promptTokens: number;
  messages: readonly unknown[];
}

/** With the sums of the details of usage, where there were some. */
interface CountsReport extends Details {
  calls: number;
  completed: number;
  failed: number;
  aborted: number;
  prompt_tokens: number;
  completion_tokens: number;
}

interface RequestReport extends CountsReport {
  /** The number of messages of the latest call. */
  messages_last: number;
}

export interface RequestDetail extends RequestReport {
  request_id: string;
  /** The messages of the latest call; null if forgotten: only the latest 2,000 requests are kept. */
  messages: readonly unknown[] | null;
}

/** `calls` = `completed` + `failed` + `aborted` + calls in flight; `rejected` counts malformed requests, not calls. */
export interface StatsReport extends CountsReport {
  in_flight: number;
  rejected: number;
  moderations: number;
  /** The latest 50,000 request ids. */
  by_request?: Record<string, RequestReport>;
}

export interface Stats {
  begin(call: Call): CallBook;
  rejected(): void;
  moderation(): void;
  report(options: { detail: boolean }): StatsReport;
  request(requestId: string): RequestDetail | undefined;
  /** Calls in flight stay in `in_flight`, but are counted nowhere else. */
  reset(): void;
}

/** The provider's own books, with which the ledger is compared. */
export function createStats(): Stats {
  const requests = createBoundedMap<RequestCounts>(REQUESTS_MAX);
  const received = createReceivedMessages();
  let totals = { ...noCounts(), rejected: 0, moderations: 0 };
  let inFlight = 0;

  function requestCounts(requestId: string): RequestCounts {
    const counts = requests.get(requestId) ?? { ...noCounts(), messagesLast: 0 };
    requests.set(requestId, counts);
    return counts;
  }

  return {
    begin({ requestId, promptTokens, messages }) {
      inFlight += 1;
      const booked: Counts[] = [totals];
      if (requestId !== null) {
        const counts = requestCounts(requestId);
        counts.messagesLast = messages.length;
        booked.push(counts);
        received.keep(requestId, messages, promptTokens);
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
    report({ detail }) {
      const { rejected, moderations } = totals;
      const report = { ...reportCounts(totals), in_flight: inFlight, rejected, moderations };
      if (!detail) return report;
      const byRequest = Array.from(requests.entries(), ([id, counts]) => [id, reportRequest(counts)] as const);
      return { ...report, by_request: Object.fromEntries(byRequest) };
    },
    request(requestId) {
      const counts = requests.get(requestId);
      if (counts === undefined) return undefined;
      return { request_id: requestId, ...reportRequest(counts), messages: received.of(requestId) };
    },
    reset() {
      totals = { ...noCounts(), rejected: 0, moderations: 0 };
      requests.clear();
      received.clear();
    },
  };
}

function openBook(booked: readonly Counts[], promptTokens: number, onEnd: () => void): CallBook {
  let ended = false;
  let promptBooked = false;

  function bookText(tokens: number): void {
    const prompt = promptBooked ? 0 : promptTokens;
    promptBooked = true;
    for (const counts of booked) {
      counts.promptTokens += prompt;
      counts.completionTokens += tokens;
    }
  }

  return {
    text(tokens) {
      if (!ended) bookText(tokens);
    },
    details(usage) {
      if (ended) return;
      for (const { details } of booked) addDetails(details, usage);
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

function addDetails(sums: Details, usage: Usage): void {
  for (const name of DETAILS) {
    for (const [kind, tokens] of Object.entries(usage[name] ?? {})) {
      const sum = (sums[name] ??= {});
      sum[kind] = (sum[kind] ?? 0) + tokens;
    }
  }
}

function noCounts(): Counts {
  return { calls: 0, completed: 0, failed: 0, aborted: 0, promptTokens: 0, completionTokens: 0, details: {} };
}

function reportCounts(counts: Counts): CountsReport {
  const { calls, completed, failed, aborted, promptTokens, completionTokens, details } = counts;
  const copied = Object.fromEntries(Object.entries(details).map(([name, sums]) => [name, { ...sums }]));
  const tokens = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
  return { calls, completed, failed, aborted, ...tokens, ...copied };
}

function reportRequest(counts: RequestCounts): RequestReport {
  return { ...reportCounts(counts), messages_last: counts.messagesLast };
}
