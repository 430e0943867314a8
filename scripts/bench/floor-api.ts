/**
 * The floor's ingress: the smallest Express + BullMQ + pub/sub program that answers the two chat routes in the same
 * format. It has no keys, validation, limits, credits, history, moderation, kept streams, pings, backpressure or real
 * errors.
 */
import { randomBytes } from 'node:crypto';

import { Queue } from 'bullmq';
import express from 'express';
import type { Request } from 'express';
import { Redis } from 'ioredis';

import { corkPerTick } from '../../shared/redis/connection.ts';
import type { FloorJob, FloorMessage } from './floor-worker.ts';

const MODEL = 'mobius';

const redisUrl = process.env['REDIS_URL'] ?? '';
const redis = corkPerTick(new Redis(redisUrl, { maxRetriesPerRequest: null }));
const queue = new Queue<FloorJob>('floor', { connection: redis });
const subscriber = new Redis(redisUrl);
const channel = `answers:${randomBytes(12).toString('hex')}`;
const waiting = new Map<string, (message: FloorMessage) => void>();

subscriber.on('message', (_channel, text) => {
  // Published by floor-worker.ts.
  const message = JSON.parse(text) as FloorMessage;
  waiting.get(message.id)?.(message);
});
await subscriber.subscribe(channel);

async function enqueue(id: string, req: Request, stream: boolean): Promise<void> {
  // Like everything else, the body is not checked.
  const body = req.body as FloorJob['body'];
  await queue.add('chat', { channel, stream, body }, { jobId: id, removeOnComplete: true, removeOnFail: true });
}

const newId = () => `req_${randomBytes(12).toString('hex')}`;
const seconds = () => Math.floor(Date.now() / 1000);

const app = express().disable('x-powered-by').disable('etag');
app.use(express.json({ limit: '20mb' }));

app.get('/health/ready', (_req, res) => {
  res.json({ status: 'ok' });
});

app.post('/platform/v1/chat', async (req, res) => {
  const id = newId();
  const { promise, resolve } = Promise.withResolvers<FloorMessage>();
  waiting.set(id, resolve);
  await enqueue(id, req, false);
  const { content, finishReason, usage, failed } = await promise;
  waiting.delete(id);
  if (failed) {
    res.status(503).json({ error: { code: 'model_unavailable', message: 'The provider failed.', request_id: id } });
    return;
  }
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: finishReason }];
  res.json({ id, object: 'chat.completion', created: seconds(), model: MODEL, choices, usage });
});

app.post('/platform/v1/chat/stream', async (req, res) => {
  const id = newId();
  const created = seconds();
  let seq = 0;
  const event = (data: string) => {
    seq += 1;
    return `id: ${seq}\ndata: ${data}\n\n`;
  };
  const chunk = (delta: object, finishReason: string | null, more: object = {}) => {
    const choices = [{ index: 0, delta, finish_reason: finishReason }];
    return event(JSON.stringify({ id, object: 'chat.completion.chunk', created, model: MODEL, choices, ...more }));
  };
  waiting.set(id, ({ content, finishReason, usage, failed }) => {
    if (content !== undefined) res.write(chunk(seq === 0 ? { role: 'assistant', content } : { content }, null));
    if (finishReason === undefined && !failed) return;
    waiting.delete(id);
    if (failed) res.destroy();
    else res.end(chunk({}, finishReason ?? 'stop', { usage }) + event('[DONE]'));
  });
  res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-cache' });
  await enqueue(id, req, true);
});

const port = Number(process.env['PORT']);
const server = app.listen(port, '127.0.0.1');
process.on('SIGTERM', () => {
  server.closeAllConnections();
  process.exit();
});
