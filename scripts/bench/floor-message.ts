/** What the floor's worker publishes for its ingress, as JSON. */
export interface FloorMessage {
  id: string;
  /** A piece of a stream; together with `finishReason`, a whole answer. */
  content?: string;
  /** Only in a request's last message. */
  finishReason?: string;
  usage?: unknown;
  /** The provider failed. */
  failed?: true;
}

export interface FloorJob {
  /** The channel on which the waiting ingress listens. */
  channel: string;
  stream: boolean;
  body: { messages: unknown };
}

export const FLOOR_QUEUE = 'floor';
