import type { IncomingMessage, ServerResponse } from 'node:http';
import { createCapacity } from './capacity.ts';
import { parseChatRequest } from './chat-request.ts';
import { createFailureSequence } from './failure-sequence.ts';
import { readJson, sendJson } from './http-io.ts';
import type { ModelSettings } from './model-settings.ts';
import { errorBody } from './openai-format.ts';
import { fingerprintOf, planAnswer } from './plan-answer.ts';
import type { Reply } from './reply.ts';
import { sendComplete } from './send-complete.ts';
import { sendStream } from './send-stream.ts';
import type { Stats } from './stats.ts';
import { countPromptTokens } from './tokens.ts';

const REQUEST_ID_LENGTH_MAX = 200;

export interface ChatCompletions {
  /** Answers one `POST /v1/chat/completions`. Throws RequestError or SettingsError. */
  answer(req: IncomingMessage, res: ServerResponse): Promise<void>;
  /** Lets the failures start over. */
  reset(): void;
}

export function createChatCompletions(models: ModelSettings, stats: Stats): ChatCompletions {
  const failures = createFailureSequence();
  const capacity = createCapacity();
  let replies = 0;

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const request = parseChatRequest(await readJson(req));
    const { name, settings } = models.forModel(request.model);
    const requestId = readRequestId(req);
    const fingerprint = fingerprintOf(request);
    const failureKey = `${requestId ?? fingerprint.key}|${request.model}`;
    const promptTokens = countPromptTokens(request.messages);
    const book = stats.begin({ requestId, promptTokens, messages: request.received });
    const failure = failures.next(settings, failureKey);
    if (failure === 'status') {
      book.end('failed');
      sendFailure(res, settings.status, settings.retryAfter);
      return;
    }
    replies += 1;
    const reply: Reply = {
      res,
      head: { id: `chatcmpl-sim${replies}`, createdSeconds: Math.floor(Date.now() / 1000), model: name },
      answer: planAnswer(request, settings, fingerprint.seed, {
        validJson: !request.wantsJson || failures.givesJson(settings, failureKey),
        empty: failure === 'empty',
      }),
      promptTokens,
      failure,
      settings,
      book,
    };
    const wait = capacity.admit(request.model, settings, promptTokens + reply.answer.completionTokens, res);
    if (wait > 0) {
      book.end('failed');
      sendFailure(res, 429, wait);
      return;
    }
    const send = () => {
      if (request.stream) sendStream(reply, request.includeUsage);
      else sendComplete(reply);
    };
    capacity.start(request.model, settings, res, send, () => {
      book.end('aborted');
    });
  }

  return {
    answer,
    reset() {
      failures.reset();
      capacity.reset();
    },
  };
}

function readRequestId(req: IncomingMessage): string | null {
  const id = req.headers['x-request-id'];
  return typeof id === 'string' && id !== '' && id.length <= REQUEST_ID_LENGTH_MAX ? id : null;
}

/** Answers with the error status that a setting demands. */
export function sendFailure(res: ServerResponse, status: number, retryAfterSeconds: number | null): void {
  const headers: Record<string, number> = retryAfterSeconds === null ? {} : { 'retry-after': retryAfterSeconds };
  sendJson(res, status, errorBody(status, `Simulated failure with status ${status}.`, null), headers);
}
