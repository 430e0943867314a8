/** What the floor's worker publishes for its ingress, as JSON. */
export interface FloorMessage {
  id: string;
  /** A piece of a stream, or a whole answer beside `finishReason`. */
  content?: string;
  /** The last message of a request has it. */
  finishReason?: string;
  usage?: unknown;
  /** The provider failed. */
  failed?: true;
}

export interface FloorJob {
  /** Where the ingress that waits listens. */
  channel: string;
  stream: boolean;
  body: { messages: unknown };
}

export const FLOOR_QUEUE = 'floor';
