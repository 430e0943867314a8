import type { IncomingMessage, ServerResponse } from 'node:http';

import { readMarks } from './call-tools.ts';
import { createCapacity } from './capacity.ts';
import { countInputTokens, readEmbeddingRequest, sendEmbeddings } from './embeddings.ts';
import { createFailureSequence } from './failure-sequence.ts';
import { readJson, sendError } from './http-io.ts';
import type { ModelSettings } from './model-settings.ts';
import { fingerprintOf, planAnswer } from './plan-answer.ts';
import type { Dialect, Reply } from './reply.ts';
import { sendComplete, sendStream } from './send-answer.ts';
import { createSchedule } from './schedule.ts';
import type { FailureMode } from './settings.ts';
import type { CallBook, Stats } from './stats.ts';
import { countPromptTokens } from './tokens.ts';

const REQUEST_ID_LENGTH_MAX = 200;

export type ChatCompletions = ReturnType<typeof createChatCompletions>;

export function createChatCompletions(models: ModelSettings, stats: Stats) {
  const failures = createFailureSequence();
  const capacity = createCapacity();
  let replies = 0;

  /** Answers one `POST /v1/chat/completions`, or `/v1/messages`. Throws RequestError or SettingsError. */
  async function answer(req: IncomingMessage, res: ServerResponse, dialect: Dialect): Promise<void> {
    const request = dialect.read(await readJson(req));
    const { name, settings } = models.forModel(request.model);
    const requestId = readRequestId(req);
    const fingerprint = fingerprintOf(request);
    const failureKey = `${requestId ?? fingerprint.key}|${request.model}`;
    const promptTokens = countPromptTokens(request);
    const book = stats.begin({ requestId, promptTokens, messages: request.received });
    const failure = failures.next(settings, failureKey);
    endWith(res, book, failure);
    if (failure === 'status') {
      book.end('failed');
      sendFailure(res, settings.status, settings.retryAfter);
      return;
    }
    replies += 1;
    const marks = readMarks(request.messages);
    const json = request.wantsJson ? failures.jsonKind(settings, failureKey) : 'valid';
    const plan = { ...fingerprint, marks, json, empty: failure === 'empty' };
    const shape = marks.usage ?? settings.usage;
    const reply: Reply = {
      res,
      dialect,
      head: { id: `${dialect.idPrefix}sim${replies}`, createdSeconds: Math.floor(Date.now() / 1000), model: name },
      answers: Array.from({ length: request.n }, (_, index) =>
        planAnswer(request, settings, { ...plan, seed: fingerprint.seed + index }),
      ),
      usageShape: shape === 'audio' && !dialect.tellsAllKinds ? 'chunk' : shape,
      promptTokens,
      failure,
      settings,
      book,
    };
    const tokens = reply.answers.reduce((sum, { completionTokens }) => sum + completionTokens, promptTokens);
    const wait = capacity.admit(request.model, settings, tokens, res);
    if (wait > 0) {
      book.end('failed');
      sendFailure(res, 429, wait);
      return;
    }
    const send = () => {
      if (request.stream) sendStream(reply, request.includeUsage);
      else sendComplete(reply);
    };
    capacity.start(request.model, settings, res, send);
  }

  async function embed(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const request = await readEmbeddingRequest(req);
    const { name, settings } = models.forModel(request.model);
    const requestId = readRequestId(req);
    const promptTokens = countInputTokens(request.inputs);
    const book = stats.begin({ requestId, promptTokens, messages: request.inputs });
    endWith(res, book, 'none');
    const fails = failures.next(settings, `${requestId ?? ''}|${request.model}`) !== 'none';
    const wait = fails ? 0 : capacity.admit(request.model, settings, promptTokens, res);
    if (fails || wait > 0) {
      book.end('failed');
      sendFailure(res, fails ? settings.status : 429, fails ? settings.retryAfter : wait);
      return;
    }
    const schedule = createSchedule(settings, res);
    const send = () => {
      book.end('completed');
      sendEmbeddings(res, name, request, promptTokens);
    };
    if (!schedule.waits(0, send)) send();
  }

  return {
    answer,
    embed,
    reset() {
      failures.reset();
      capacity.reset();
    },
  };
}

/** A caller that leaves ends its call; a stalled one has failed. */
function endWith(res: ServerResponse, book: CallBook, failure: FailureMode): void {
  res.once('close', () => {
    book.end(failure === 'stall' ? 'failed' : 'aborted');
  });
}

function readRequestId(req: IncomingMessage): string | null {
  const id = req.headers['x-request-id'];
  return typeof id === 'string' && id !== '' && id.length <= REQUEST_ID_LENGTH_MAX ? id : null;
}

/** Answers with the error status that a setting demands. */
export function sendFailure(res: ServerResponse, status: number, retryAfterSeconds: number | null): void {
  const headers: Record<string, number> = retryAfterSeconds === null ? {} : { 'retry-after': retryAfterSeconds };
  sendError(res, status, `Simulated failure with status ${status}.`, null, headers);
}
