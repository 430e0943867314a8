/** What the stateful benchmark asks of a system. An adapter of another product fills this in, or an adapter file does. */

/** A key whose spending and limits are its own. */
export interface Account {
  key: string;
  /** What the system calls it, where that is not the key. */
  id: string;
}

/** What an account is opened with; without a number there is no limit that the benchmark can reach. */
export interface AccountTerms {
  requestsPerMinute?: number;
  /** What it may spend; an adapter turns tokens into its own currency, at one price for every token. */
  tokens?: number;
}

/** What the system's own books say of an account, in tokens. */
export interface Statement {
  granted: number;
  /** The sum of what was booked. */
  charged: number;
  balance: number;
  /** The request of each booking, as `requestId` names it. Undefined where single requests are not booked. */
  bookings: string[] | undefined;
}

export interface Ask {
  content: string;
  stream: boolean;
  maxTokens?: number;
}

export interface HttpAsk {
  /** Behind the base URL. */
  path: string;
  headers: Record<string, string>;
  body?: string;
}

/** A part of the system that can be ended with SIGKILL and started again. */
export interface Component {
  kill(): Promise<void>;
  /** Resolves when it was started; it need not be ready. */
  start(): Promise<void>;
}

interface RunningBatch {
  /** Resolves when no line of it runs any more. */
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
  /** Of its two ingresses where it can have two; each ends without a slash. */
  urls: readonly string[];
  /** What it runs with, in a sentence each. */
  notes: readonly string[];
  missing: Partial<Record<Feature, Missing>>;
  ask(account: Account, ask: Ask): HttpAsk;
  /** The header that names a request in resumes and bookings. */
  requestIdHeader: string;
  openAccount(terms: AccountTerms): Promise<Account>;
  statement?(account: Account): Promise<Statement>;
  /** How long its books may be behind its answers. */
  bookSeconds: number;
  resume?(account: Account, requestId: string, lastEventId: string): HttpAsk;
  components: Readonly<Record<string, Component>>;
  /** Starts a batch of this many short requests. */
  submitBatch?(account: Account, lines: number): Promise<RunningBatch>;
  /** Ends its processes, so that the next system has the machine to itself. */
  close?(): Promise<void>;
}
