import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import { ref } from '../../openapi/schema.ts';

const STATE = {
  id: PATH_PARAMETERS.requestId.example,
  object: 'chat.request',
  created_at: 1_795_255_200,
  status: 'completed',
  timeline: {
    accepted_at: 1_795_255_200.118,
    queued_at: 1_795_255_200.118,
    started_at: 1_795_255_200.125,
    moderated_at: 1_795_255_200.127,
    moderation: { backend: 'local', verdict: 'passed', categories: [] },
    first_token_at: 1_795_255_200.431,
    finished_at: 1_795_255_201.002,
    settled_at: null,
    attempts: [
      {
        provider: 'openai',
        model: 'gpt-5-mini',
        started_at: 1_795_255_200.13,
        ended_at: 1_795_255_201.001,
        outcome: 'ok',
      },
    ],
  },
  response: {
    id: PATH_PARAMETERS.requestId.example,
    object: 'chat.completion',
    created: 1_795_255_200,
    model: 'mobius',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'A noun names a person, a place or a thing.' },
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 14, completion_tokens: 9, total_tokens: 23 },
  },
  error: null,
  usage: { prompt_tokens: 14, completion_tokens: 9, total_tokens: 23 },
};

/** What the document tells of looking up and cancelling requests. */
export const chatRequestsOperations: OperationsOf<'getChatRequest' | 'cancelChatRequest'> = {
  getChatRequest: {
    tag: 'Chat',
    summary: 'Look a request up',
    description:
      'With its answer, for 15 minutes after its end (24 hours with an `Idempotency-Key` or asynchronously). Takes nothing from the limit of the key: 600 look-ups a minute are allowed beside it.',
    answers: { 200: json('The request as it is.', ref('ChatRequestState')) },
    errors: ['gone'],
    examples: { ended: { status: 200, answer: STATE } },
  },
  cancelChatRequest: {
    tag: 'Chat',
    summary: 'Cancel a request',
    description:
      'A request that has ended stays as it is. One that has text ends with `finish_reason: "cancelled"` and is charged for what was generated; one without text is not charged, and whoever waits for it gets 409 `conflict`.',
    answers: { 200: json('The request after it.', ref('ChatRequestState')) },
    errors: ['gone'],
    examples: { ended: { summary: 'A request that has ended', status: 200, answer: STATE } },
  },
};
