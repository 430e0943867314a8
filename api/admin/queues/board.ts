import { createBullBoard } from '@bull-board/api';
import { ExpressAdapter } from '@bull-board/express';
import { Router } from 'express';
import type { Express, RequestHandler } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import { BOARD_PATH, SIGN_IN_PATH } from '../access/authenticate-admin.ts';
import { isStoreFault } from '../../http/error-handler.ts';
import { createBoardHistory } from './board-history.ts';
import type { BullQueue } from './queues-endpoints.ts';
import { RedactedQueue } from './redacted-queue.ts';
import type { QueueWatch } from './redacted-queue.ts';
import { QUEUE_NAMES, WEBHOOK_QUEUE_NAMES } from '../../../shared/contracts/jobs.ts';
import { createChatQueues, openQueue } from '../../../shared/queue/queues.ts';
import type { ShardDirectory } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { ProcessParts } from '../../../shared/process-parts.ts';

export type BoardQueues = ReturnType<typeof openBoardQueues>;

/** A new shard appears with its first tenant, while this process runs. */
const SHARDS_FRESH_MS = 2_000;

/** Opens every queue, for watching only. */
export function openBoardQueues(parts: ProcessParts, shardDirectory: ShardDirectory) {
  const { redis, keyspace, closer, clock, log } = parts;
  const onError = (error: Error) => {
    log.warn('The queue reported an error.', { error });
  };
  const chat = createChatQueues(redis, keyspace, onError);
  closer.defer('queues', () => chat.close());
  const webhooks = WEBHOOK_QUEUE_NAMES.map((name) =>
    openQueue(name, { client: redis, prefix: keyspace.webhooks, onError }),
  );
  const compliance = openQueue('compliance', { client: redis, prefix: keyspace.compliance, onError });
  const background = [...webhooks, compliance];
  closer.defer('background queues', async () => {
    await Promise.all(background.map((queue) => queue.close()));
  });
  let queues: readonly BullQueue[] = [];
  let readAt = -Infinity;

  async function read(): Promise<readonly BullQueue[]> {
    const now = clock.now();
    if (now - readAt < SHARDS_FRESH_MS) return queues;
    readAt = now;
    try {
      const shards = await shardDirectory.list();
      queues = shards.flatMap((shard) => QUEUE_NAMES.map((name) => chat.queue(shard, name)));
    } catch (error) {
      log.warn('The list of shards could not be read; the known ones are shown.', { error });
    }
    return queues;
  }

  return {
    /** The chat queues of every shard, including shards added since the start. */
    chat: read,
    /** Webhooks, exports and deletions, for the whole installation. */
    background: background.map(({ queue }) => queue),
  };
}

/** The page shows an `error` that is a sentence, and an empty message for an object. */
export const sayErrors: RequestHandler = (_req, res, next) => {
  const send = res.json.bind(res);
  res.json = (body?: { error?: { message?: unknown } }) => {
    if (typeof body?.error?.message !== 'string') return send(body);
    const { message, ...more } = body.error;
    return send({ ...more, error: message });
  };
  next();
};

/** By default the board's page loads fonts from another server; this policy forbids loading anything from elsewhere. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  // The page and its components carry style attributes.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const setPolicy: RequestHandler = (_req, res, next) => {
  res.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY);
  next();
};

/** The board decodes these parameters a second time and fails on malformed escapes, so they are checked here. */
const checkQuery: RequestHandler = (req, _res, next) => {
  for (const name of ['activeQueue', 'queueName']) {
    const value = req.query[name];
    if (value === undefined) continue;
    try {
      if (typeof value === 'string') decodeURIComponent(value);
      else throw new TypeError('given twice');
    } catch (cause) {
      throw new ServiceError('invalid_request', `\`${name}\` must be the name of a queue.`, { param: name, cause });
    }
  }
  next();
};

/** Bull Board answers any failure with 500 and logs nothing. Unavailable stores go to the usual error handler. */
class BoardAdapter extends ExpressAdapter {
  override setErrorHandler(handler: Parameters<ExpressAdapter['setErrorHandler']>[0]): this {
    return super.setErrorHandler((error) => {
      if (isStoreFault(error)) throw error;
      return handler(error);
    });
  }
}

/** The board hides its buttons; a call of a button's address is told what to use instead. */
const readOnly: RequestHandler = (req, res, next) => {
  if (req.method === 'GET' || req.method === 'HEAD') {
    next();
    return;
  }
  res.setHeader('Allow', 'GET, HEAD');
  throw new ServiceError(
    'method_not_allowed',
    'The board only shows; POST /admin/v1/queues/{id}/pause and /resume, and /admin/v1/requests/replay, change something.',
  );
};

const READ_ONLY = { readOnlyMode: true, allowRetries: false };

function createBoard(background: readonly BullQueue[], watch: QueueWatch) {
  const serverAdapter = new BoardAdapter();
  serverAdapter.setBasePath(BOARD_PATH);
  const others = background.map((queue) => new RedactedQueue(queue, watch, READ_ONLY));
  const places = new Map(others.map((queue) => [queue.getName(), queue.place]));
  const board = createBullBoard({
    queues: others,
    serverAdapter,
    options: {
      historyProvider: createBoardHistory(places, watch.history, watch.clock),
      uiConfig: {
        boardTitle: 'Parley queues',
        showMetrics: true,
        miscLinks: [{ text: 'Sign out', url: SIGN_IN_PATH }],
      },
    },
  });
  // The adapter declares `any`, but returns the Express app that it created.
  const app = serverAdapter.getRouter() as Express;
  app.disable('x-powered-by');
  const shown = new Map<BullQueue, RedactedQueue>();
  return {
    app,
    show(queues: readonly BullQueue[]): void {
      if (queues.every((queue) => shown.has(queue))) return;
      for (const queue of queues) {
        const redacted = shown.get(queue) ?? new RedactedQueue(queue, watch, READ_ONLY);
        shown.set(queue, redacted);
        places.set(redacted.getName(), redacted.place);
      }
      // Replacing all keeps this order; adding to the existing ones would not.
      board.replaceQueues([]);
      board.setQueues([...shown.values(), ...others]);
    },
  };
}

/** Bull Board, to be mounted at `/admin/queues` behind the token: redacted and read-only (docs/spec.md#bull-board). */
export function createQueuesBoard(queues: BoardQueues, watch: QueueWatch): Router {
  const board = createBoard(queues.background, watch);
  const showChatQueues: RequestHandler = async (_req, _res, next) => {
    board.show(await queues.chat());
    next();
  };
  const router = Router();
  router.use(setPolicy, checkQuery, showChatQueues, readOnly, board.app);
  return router;
}
