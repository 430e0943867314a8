/** A request that the provider refuses; `message` goes to the caller in an error object of OpenAI's shape. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  /** The field at fault (`messages[2].content`), where there is one. */
  readonly param: string | null;

  constructor(status: number, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}
