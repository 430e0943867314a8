/** One provider call of a request, or a target that was skipped, for its timeline. Never any text. */
export interface AttemptTrace {
  provider: string;
  model: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  endedAt: number;
  /** `ok`, why the call failed in an operator's words, or `breaker_open`: it was not made. */
  outcome: string;
}

/** Moderation's last verdict: first on the submitted messages, then on the answer. */
export interface ModerationTrace {
  backend: string;
  /** `unavailable`: the backend gave no verdict, so the request was refused. */
  verdict: 'passed' | 'flagged_input' | 'flagged_output' | 'unavailable';
  categories: string[];
}

/** What a worker notes about a request besides the times in its record. */
export interface RequestTrace {
  moderatedAt?: number;
  moderation?: ModerationTrace;
  attempts: AttemptTrace[];
}
