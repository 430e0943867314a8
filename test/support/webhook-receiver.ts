import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

import { waitFor } from './wait-for.ts';

export interface ReceivedWebhook {
  path: string;
  headers: IncomingHttpHeaders;
  /** As it was sent: what is signed. */
  text: string;
  body: { id: string; type: string; timestamp: string; data: Record<string, unknown> };
}

/** A tenant's receiver on this machine. */
export interface WebhookReceiver {
  url: string;
  received: ReceivedWebhook[];
  /** How the next requests are answered, 204 unless it is said. */
  answerWith(answer: (res: ServerResponse) => void): void;
  /** Waits for the first event of a type, or the nth. */
  next(type: string, count?: number): Promise<ReceivedWebhook>;
  close(): Promise<void>;
}

async function textOf(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of req.setEncoding('utf8')) text += String(part);
  return text;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  const succeed = (res: ServerResponse) => res.writeHead(204).end();
  let answer: (res: ServerResponse) => void = succeed;
  const server = createServer((req, res) => {
    void textOf(req).then((text) => {
      const body = JSON.parse(text) as ReceivedWebhook['body'];
      received.push({ path: req.url ?? '', headers: req.headers, text, body });
      answer(res);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    answerWith(next) {
      answer = next;
    },
    next: (type, count = 1) =>
      waitFor(() => received.filter(({ body }) => body.type === type)[count - 1], `${type} no. ${count}`),
    close() {
      server.closeAllConnections();
      return new Promise((resolve) =>
        server.close(() => {
          resolve();
        }),
      );
    },
  };
}
