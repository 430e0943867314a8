/** The provider was not called: its circuit breaker is open, or half open and another request is its probe. */
export class BreakerOpenError extends Error {
  override readonly name = 'BreakerOpenError';
  /** After which it may be worth asking again; milliseconds. */
  readonly retryInMs: number;

  constructor(provider: string, retryInMs: number) {
    super(`The circuit breaker of ${provider} is open`);
    this.retryInMs = retryInMs;
  }
}
