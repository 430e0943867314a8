import type { TokenKinds } from '../../../shared/contracts/events.ts';

/** What an experiment leaves behind, seen from all sides; the checker joins it by request id. */
export interface Evidence {
  requests: readonly ClientRequest[];
  /** The provider's own count, by request id. */
  provider: ReadonlyMap<string, ProviderCount>;
  /** Every line of the ledger, grants included. */
  ledger: readonly LedgerLine[];
  accounts: readonly AccountState[];
  /** The request records in Redis; undefined where the experiment lets them expire. */
  records: readonly RequestState[] | undefined;
  /**
   * Request ids whose acceptance Redis has lost with its last second: it has no record, and what their callers were
   * told had failed has no charge.
   */
  forgotten?: ReadonlySet<string>;
  /** The answers that MongoDB keeps for a day. */
  keptAnswers: readonly StoredText[];
  /** What `npm run reconcile -- --check` says at rest. */
  reconciliation: { exitCode: number; output: string };
  /** Everything that must be empty at rest: its name and how much is in it. */
  queues: Readonly<Record<string, number>>;
  exits: readonly ProcessExit[];
  logs: readonly { name: string; text: string }[];
  /** What must be in no log. */
  secrets: readonly { name: string; value: string }[];
  /** Micro-credits a token. */
  rates: Readonly<Record<string, { prompt: number; completion: number }>>;
}

/** One request as its client knows it. */
export interface ClientRequest {
  /** In the prompt of this request and of no other. */
  canary: string;
  /** What the whole answer says; undefined where the client cannot know. */
  expectedText: string | undefined;
  tenantId: string;
  stream: boolean;
  /** The POST, then every resumption of its stream. */
  readings: readonly Reading[];
}

export interface SseEvent {
  /** The sequence number of its `id:` line. */
  seq: number;
  data: string;
  /** `performance.now()` at its coming. */
  at: number;
}

/** One connection of a client. Times are `performance.now()`. */
export interface Reading {
  /** Of the answer's body, else `X-Request-Id`; '' where no head came. */
  requestId: string;
  /** Whether the body named it. */
  hasOwnId: boolean;
  /** 0 where no head came. */
  status: number;
  sentAt: number;
  headAt: number;
  endedAt: number;
  /**
   * `open`: not yet; `closed`: by the service, in order; `broken`: by a fault of the connection; `left`: by the client.
   */
  end: 'open' | 'closed' | 'broken' | 'left';
  /** Of a stream. */
  events: readonly SseEvent[];
  text: string;
  finishReason: string | undefined;
  errorCode: string | undefined;
  usage: { prompt: number; completion: number } | undefined;
  /** `[DONE]` came. */
  isDone: boolean;
  retryAfterSeconds: number | undefined;
  isReplayed: boolean;
}

export interface ProviderCount {
  calls: number;
  promptTokens: number;
  completionTokens: number;
  /** Among those of both counts. */
  kinds?: TokenKinds;
  /** What it was to write; absent where the requests of an experiment are not asked by its clients. */
  answer?: ProviderAnswer;
}

export interface ProviderAnswer {
  text: string;
  /** To the last word; otherwise at least as far as the provider came. */
  isWhole: boolean;
  /** As the service's tokenizer counts the text. The provider's count of dense text is a fraction of it. */
  tokens: number;
}

export interface LedgerLine {
  tenantId: string;
  type: string;
  amountMicro: number;
  requestId: string | undefined;
  tier: string | undefined;
  mode: string | undefined;
  promptTokens: number;
  completionTokens: number;
  kinds?: TokenKinds;
  isEstimated: boolean;
  finishReason: string | undefined;
}

/** A tenant's money at rest, in micro-credits. */
export interface AccountState {
  tenantId: string;
  /** What the administrator has granted, as the experiment asked for it. */
  grantedMicro: number;
  /** In MongoDB. */
  balanceMicro: number;
  /** In Redis. */
  ledgerMicro: number;
  /** In Redis, of credits and of the months' token budgets: all 0 at rest, by name. */
  leftovers: Readonly<Record<string, number>>;
}

/** The text of a request where the service stores it. */
export interface StoredText {
  requestId: string;
  text: string;
  finishReason: string | undefined;
}

/** A request as Redis has it. */
export interface RequestState extends StoredText {
  tenantId: string;
  state: string;
  /** How many terminal entries its stream has. */
  terminals: number;
  /** Text increments in its stream. */
  increments: number;
}

export interface ProcessExit {
  name: string;
  /** "exit code 0", "SIGKILL". */
  how: string;
  /** What the experiment meant to happen; undefined: it was to go on. */
  planned: string | undefined;
}
