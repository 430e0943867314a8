/** What the stateful benchmark asks of a system; an adapter's code or an adapter file provides it. */

/** A key with its own spending and limits. */
export interface Account {
  key: string;
  /** The system's name for the account, if that is not the key. */
  id: string;
}

/** The terms of a new account; a number that is left out means no limit within the benchmark's reach. */
export interface AccountTerms {
  requestsPerMinute?: number;
  /** What it may spend; an adapter converts tokens into the system's currency, at one price for every token. */
  tokens?: number;
}

/** What the system's own books say about an account, in tokens. */
export interface Statement {
  granted: number;
  /** The sum of all bookings. */
  charged: number;
  balance: number;
  /** The request of each booking, as `requestId` names it. Undefined if requests are not booked one by one. */
  bookings: string[] | undefined;
}

export interface Ask {
  content: string;
  stream: boolean;
  maxTokens?: number;
}

export interface HttpAsk {
  /** Appended to the base URL. */
  path: string;
  headers: Record<string, string>;
  body?: string;
}

/** A part of the system that can be killed with SIGKILL and restarted. */
export interface Component {
  kill(): Promise<void>;
  /** Resolves when it has been started; it need not be ready. */
  start(): Promise<void>;
}

interface RunningBatch {
  /** Resolves when no line of the batch is running any more. */
  cancel(): Promise<void>;
}

export type Feature = 'requestLimits' | 'accounts' | 'resume' | 'batches' | 'kill';

/** Why a feature cannot be measured: the system has none, or it could not be tried here. */
export interface Missing {
  kind: 'not supported' | 'not tried';
  why: string;
}

export interface StatefulSystem {
  name: string;
  version: string;
  /** The URLs of its two ingresses, if it can have two; without a trailing slash. */
  urls: readonly string[];
  /** How it is set up, one sentence each. */
  notes: readonly string[];
  missing: Partial<Record<Feature, Missing>>;
  ask(account: Account, ask: Ask): HttpAsk;
  /** The header that names a request in resumes and bookings. */
  requestIdHeader: string;
  openAccount(terms: AccountTerms): Promise<Account>;
  statement?(account: Account): Promise<Statement>;
  /** How far its books may lag behind its answers. */
  bookSeconds: number;
  resume?(account: Account, requestId: string, lastEventId: string): HttpAsk;
  components: Readonly<Record<string, Component>>;
  /** Starts a batch of this many short requests. */
  submitBatch?(account: Account, lines: number): Promise<RunningBatch>;
  /** Stops its processes, so that the next system has the machine to itself. */
  close?(): Promise<void>;
}
