/** The floor's worker: takes a job, calls the provider, and publishes what arrives. */
import { Worker } from 'bullmq';
import { createParser } from 'eventsource-parser';
import { Redis } from 'ioredis';
import { request } from 'undici';

import { corkPerTick } from '../../shared/redis/connection.ts';

/** A message to the floor's ingress, as JSON. */
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

/** The default of the service's own setting. */
const CONCURRENCY = Number(process.env['WORKER_CONCURRENCY'] ?? 512);

const redisUrl = process.env['REDIS_URL'] ?? '';
const url = `${process.env['PROVIDER_URL'] ?? ''}/v1/chat/completions`;
const model = process.env['PROVIDER_MODEL'] ?? '';
const redis = corkPerTick(new Redis(redisUrl, { maxRetriesPerRequest: null }));

/** The parts of a chat completion, or of one chunk of it, that the floor passes on. */
interface Completion {
  choices: { message?: { content: string }; delta?: { content?: string }; finish_reason: string | null }[];
  usage?: unknown;
}

function publish(channel: string, message: FloorMessage): Promise<number> {
  return redis.publish(channel, JSON.stringify(message));
}

async function callProvider({ stream, body: { messages } }: FloorJob) {
  const streamFields = stream ? { stream: true, stream_options: { include_usage: true } } : {};
  const { statusCode, body } = await request(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ model, messages, max_tokens: 4_096, ...streamFields }),
  });
  if (statusCode !== 200) throw new Error(`The provider answered ${statusCode}`);
  return body;
}

async function complete(id: string, job: FloorJob): Promise<void> {
  const body = await callProvider(job);
  // The simulated provider's answer, an OpenAI chat completion.
  const { choices, usage } = (await body.json()) as Completion;
  const content = choices[0]?.message?.content ?? '';
  await publish(job.channel, { id, content, finishReason: choices[0]?.finish_reason ?? 'stop', usage });
}

async function stream(id: string, job: FloorJob): Promise<void> {
  const body = await callProvider(job);
  let finishReason = 'stop';
  let usage: unknown;
  const published: Promise<number>[] = [];
  const parser = createParser({
    onEvent({ data }) {
      if (data === '[DONE]') return;
      // One chunk of the same.
      const chunk = JSON.parse(data) as Completion;
      const choice = chunk.choices[0];
      const content = choice?.delta?.content;
      finishReason = choice?.finish_reason ?? finishReason;
      usage = chunk.usage ?? usage;
      if (content !== undefined && content !== '') published.push(publish(job.channel, { id, content }));
    },
  });
  body.setEncoding('utf8');
  for await (const text of body as AsyncIterable<string>) parser.feed(text);
  await Promise.all(published);
  await publish(job.channel, { id, finishReason, usage });
}

const worker = new Worker<FloorJob>(
  'floor',
  async ({ id = '', data }) => {
    try {
      await (data.stream ? stream(id, data) : complete(id, data));
    } catch (error) {
      console.error(error);
      await publish(data.channel, { id, failed: true });
    }
  },
  { connection: redis, concurrency: CONCURRENCY },
);
worker.on('error', (error) => {
  console.error(error);
});
process.on('SIGTERM', () => {
  process.exit();
});
