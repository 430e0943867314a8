/**
 * A browser's EventSource, in Chromium. It cannot send a key, so this program is the backend that an application has: it
 * sends the request and passes its events on. The page hears of each ask as an event, too, and reports what it read.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { begin } from './begin-stream.mjs';

/** Runs in the browser. */
async function readAsks() {
  const report = (outcome) => fetch('/outcome', { method: 'POST', body: JSON.stringify(outcome) });
  new EventSource('/asks').onmessage = ({ data }) => {
    const { id, requestId, leaves } = JSON.parse(data);
    const source = new EventSource(`/stream/${requestId}`);
    let text = '';
    let finish;
    const end = (outcome) => {
      source.close();
      void report({ id, text, ...outcome });
    };
    source.onerror = () =>
      source.readyState === EventSource.CLOSED && end({ error: { message: 'The stream was refused' } });
    source.onmessage = ({ data }) => {
      if (data === '[DONE]') return end({ finish });
      const { choices, error } = JSON.parse(data);
      if (error) return end({ error });
      text += choices[0].delta.content ?? '';
      finish = choices[0].finish_reason ?? finish;
      if (leaves && text) end({ finish });
    };
  };
}

const asked = new Map();
let tell = () => {};
const page = new Promise((opened) => {
  const routes = {
    '/': (_req, res) => res.setHeader('Content-Type', 'text/html').end(`<script>(${readAsks})()</script>`),
    '/asks': (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      tell = (ask) => res.write(`data: ${JSON.stringify(ask)}\n\n`);
      opened();
    },
    '/outcome': async (req, res) => {
      console.log(Buffer.concat(await req.toArray()).toString());
      res.end();
    },
  };
  const server = createServer((req, res) => void (routes[req.url] ?? passOn)(req, res));
  server.listen(0, '127.0.0.1', () => openBrowser(`http://127.0.0.1:${server.address().port}/`));
});

/** Every header that the service reads or sends for a stream is passed on, and so is the end of either side. */
async function passOn(req, res) {
  const { baseURL, apiKey } = asked.get(req.url.replace('/stream/', '')) ?? {};
  if (apiKey === undefined) return res.writeHead(404).end();
  const leaving = new AbortController();
  res.once('close', () => leaving.abort());
  const lastEventId = req.headers['last-event-id'];
  const headers = { Authorization: `Bearer ${apiKey}`, ...(lastEventId && { 'Last-Event-ID': lastEventId }) };
  const answer = await fetch(`${baseURL}/chat${req.url}`, { headers, signal: leaving.signal });
  res.writeHead(answer.status, { 'Content-Type': answer.headers.get('Content-Type') ?? 'text/plain' });
  if (answer.body === null) return res.end();
  await pipeline(Readable.fromWeb(answer.body), res).catch(() => {});
}

function openBrowser(url) {
  const profile = mkdtempSync(join(tmpdir(), 'parley-browser-'));
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
  const browser = spawn(
    process.env.TEST_CLIENTS_BROWSER ?? 'chromium',
    [...args, `--user-data-dir=${profile}`, '--remote-debugging-port=0', url],
    { stdio: 'ignore' },
  );
  process.once('SIGTERM', () => {
    browser.once('exit', () => {
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
      process.exit();
    });
    browser.kill();
  });
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const ask = JSON.parse(line);
  try {
    await page;
    const requestId = await begin(ask);
    asked.set(requestId, ask);
    tell({ id: ask.id, requestId, leaves: ask.leaves });
  } catch (error) {
    console.log(JSON.stringify({ id: ask.id, text: '', error: { name: error.name, message: error.message } }));
  }
});
