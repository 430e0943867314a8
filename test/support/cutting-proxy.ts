import { createServer, request } from 'node:http';

export interface CuttingProxy {
  url: string;
  /** How many answers were cut. */
  cuts(): number;
  close(): Promise<void>;
}

/** Forwards to `target`, and cuts the first answer to each new stream after its third event. */
export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  let cuts = 0;
  const server = createServer((req, res) => {
    const isNewStream = req.method === 'POST' && req.url?.endsWith('/chat/stream') === true;
    const forwarded = request(target + (req.url ?? ''), { method: req.method, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        const third = text.indexOf('id: 4\n');
        if (!isNewStream || third === -1) return void res.write(part);
        cuts += 1;
        answer.destroy();
        res.destroy();
      });
      answer.on('end', () => res.end());
      answer.on('error', () => res.destroy());
    });
    forwarded.on('error', () => res.destroy());
    req.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    cuts: () => cuts,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => {
          resolve();
        });
      }),
  };
}
