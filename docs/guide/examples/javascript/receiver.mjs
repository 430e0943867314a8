// A webhook receiver that verifies. npm install standardwebhooks; reads WEBHOOK_SECRET and PORT.
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

createServer(async (req, res) => {
  const parts = [];
  for await (const part of req) parts.push(part);
  try {
    // Verify the body as it came, byte for byte, before you believe anything.
    const event = webhook.verify(Buffer.concat(parts).toString('utf8'), req.headers);
    console.log(event.id, event.type, event.data);
    res.writeHead(204).end();
  } catch {
    res.writeHead(400).end();
  }
}).listen(Number(process.env.PORT ?? 9000), '127.0.0.1');
