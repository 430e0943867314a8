/** A request that the provider refuses; the caller gets `message` in an error object of OpenAI's shape. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  /** The wrong field (`messages[2].content`), if there is one. */
  readonly param: string | null;

  constructor(status: number, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}
