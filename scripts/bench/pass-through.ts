/**
 * A bare pass-through: forwards each request to the provider and the answer back, without looking at either. No gateway
 * on Node.js can cost less.
 */
import { createServer } from 'node:http';

import { Agent } from 'undici';

const providerUrl = process.env['PROVIDER_URL'] ?? '';
const agent = new Agent({ connections: null, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });

const server = createServer((req, res) => {
  if (req.method === 'GET') {
    res.end('{}');
    return;
  }
  agent
    .stream(
      {
        origin: providerUrl,
        path: req.url ?? '/',
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: req.headers.authorization ?? '' },
        body: req,
      },
      ({ statusCode, headers }) => {
        res.writeHead(statusCode, { 'content-type': String(headers['content-type']) });
        return res;
      },
    )
    .catch(() => {
      res.destroy();
    });
});
server.listen(Number(process.env['PORT']), '127.0.0.1');
process.on('SIGTERM', () => {
  process.exit();
});
