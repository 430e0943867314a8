import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ChatCompletions } from './chat-completions.ts';
import { sendFailure } from './chat-completions.ts';
import { RequestError } from './chat-request.ts';
import { readJson, sendError, sendJson } from './http-io.ts';
import type { ModelSettings } from './model-settings.ts';
import { MESSAGES } from './messages-format.ts';
import { moderate, parseModerationRequest } from './moderate.ts';
import { COMPLETIONS } from './openai-format.ts';
import { createSchedule } from './schedule.ts';
import { SettingsError } from './settings.ts';
import type { Stats } from './stats.ts';

export interface RouteDeps {
  models: ModelSettings;
  stats: Stats;
  chat: ChatCompletions;
}

type Handler = (req: IncomingMessage, res: ServerResponse, query: string) => void | Promise<void>;

const REQUEST_PATH = '/stats/requests/';
const MODEL_LIST = {
  object: 'list',
  data: [{ id: 'sim', object: 'model', created: 1_767_225_600, owned_by: 'parley' }],
};

/** Finds the handler of a request and turns its errors into error objects of OpenAI's shape. */
export function createRoutes(deps: RouteDeps): (req: IncomingMessage, res: ServerResponse) => void {
  const { stats, chat } = deps;
  const handlers = new Map<string, Handler>([
    ['POST /v1/chat/completions', (req, res) => chat.answer(req, res, COMPLETIONS)],
    ['POST /v1/messages', (req, res) => chat.answer(req, res, MESSAGES)],
    ['POST /v1/embeddings', (req, res) => chat.embed(req, res)],
    ['POST /v1/moderations', (req, res) => answerModeration(deps, req, res)],
    ['GET /v1/models', answerWith(() => MODEL_LIST)],
    ['GET /health/live', answerWith(() => ({ status: 'ok' }))],
    ...statsHandlers(deps),
    ...settingsHandlers(deps),
  ]);

  async function route(req: IncomingMessage, res: ServerResponse, path: string, query: string): Promise<void> {
    const method = req.method ?? '';
    const handler = handlers.get(`${method} ${path}`);
    if (handler !== undefined) await handler(req, res, query);
    else if (method === 'GET' && path.startsWith(REQUEST_PATH)) sendRequest(stats, path, res);
    else throw new RequestError(404, `Unknown request URL: ${method} ${path}.`);
  }

  return (req, res) => {
    const [path = '', query = ''] = (req.url ?? '').split('?', 2);
    route(req, res, path, query).catch((error: unknown) => {
      if (path.startsWith('/v1/')) stats.rejected();
      sendFault(res, error);
    });
  };
}

function statsHandlers({ stats, chat }: RouteDeps): [string, Handler][] {
  return [
    ['GET /stats', answerWith((query) => stats.report({ detail: new URLSearchParams(query).get('detail') !== '0' }))],
    [
      'POST /stats/reset',
      answerWith(() => {
        stats.reset();
        chat.reset();
        return stats.report({ detail: false });
      }),
    ],
  ];
}

function settingsHandlers({ models }: RouteDeps): [string, Handler][] {
  return [
    ['GET /settings', answerWith(() => models.current())],
    [
      'POST /settings',
      async (req, res) => {
        models.change(await readJson(req));
        sendJson(res, 200, models.current());
      },
    ],
    [
      'DELETE /settings',
      answerWith(() => {
        models.restore();
        return models.current();
      }),
    ],
  ];
}

function answerWith(make: (query: string) => object): Handler {
  return (_req, res, query) => {
    sendJson(res, 200, make(query));
  };
}

async function answerModeration(deps: RouteDeps, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { model, inputs } = parseModerationRequest(await readJson(req));
  const { name, settings } = deps.models.forModel(model);
  deps.stats.moderation();
  const send = (): void => {
    if (settings.moderationStatus !== 200) sendFailure(res, settings.moderationStatus, settings.retryAfter);
    else sendJson(res, 200, { id: 'modr-sim', model: name, results: inputs.map(moderate) });
  };
  if (!createSchedule({ firstTokenMs: settings.moderationMs, chunkMs: 0 }, res).waits(0, send)) send();
}

function sendRequest(stats: Stats, path: string, res: ServerResponse): void {
  const record = stats.request(decodeId(path.slice(REQUEST_PATH.length)));
  if (record === undefined) throw new RequestError(404, 'No call with this X-Request-Id is on record.');
  sendJson(res, 200, record);
}

function decodeId(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RequestError(400, 'The request id in the path is not percent-encoded correctly.');
  }
}

function sendFault(res: ServerResponse, error: unknown): void {
  if (res.destroyed || res.headersSent) {
    res.destroy();
  } else if (error instanceof RequestError) {
    sendError(res, error.status, error.message, error.param);
  } else if (error instanceof SettingsError) {
    sendError(res, 400, error.message);
  } else {
    // A bug: standard error is this program's only log.
    console.error(error);
    sendError(res, 500, 'The simulated provider has a bug; its standard error shows where.');
  }
}
