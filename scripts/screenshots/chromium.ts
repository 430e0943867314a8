import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import type { Supervisor } from '../harness/supervisor.ts';
import { startProgram } from './start-program.ts';

/** Headless and silent: it fetches nothing but the pages it is sent to. */
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--hide-scrollbars',
  '--remote-debugging-port=0',
];

export interface Shot {
  url: string;
  file: string;
  headers?: Record<string, string>;
  /** Runs in the page before the picture is taken. */
  script?: string;
  width: number;
  height: number;
  settleMs: number;
}

interface Answer {
  id?: number;
  result?: Record<string, unknown>;
  error?: { message: string };
}

/** Calls the DevTools protocol over one connection. */
async function connect(url: string) {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => {
      reject(new Error('Chromium does not answer.'));
    });
  });
  let last = 0;
  const waiting = new Map<number, (answer: Answer) => void>();
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer);
  });
  return async (method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> => {
    const id = (last += 1);
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    const { result = {}, error } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
}

/** Opens a Chromium that takes pictures of pages. */
export async function openChromium(supervisor: Supervisor, program: string, dataDir: string) {
  const profile = join(dataDir, 'chromium');
  startProgram(supervisor, 'Chromium', program, [...ARGUMENTS, `--user-data-dir=${profile}`, 'about:blank']);
  const portFile = join(profile, 'DevToolsActivePort');
  for (let tries = 0; !existsSync(portFile); tries += 1) {
    if (tries > 300) throw new Error('Chromium did not start within 30 s.');
    await pause(100);
  }
  const [port = '', path = ''] = readFileSync(portFile, 'utf8').split('\n');
  const send = await connect(`ws://127.0.0.1:${port}${path}`);

  return async ({ url, file, headers = {}, script, width, height, settleMs }: Shot): Promise<void> => {
    const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
    const page = (method: string, params?: object) => send(method, params, String(sessionId));
    await page('Network.enable');
    await page('Network.setExtraHTTPHeaders', { headers });
    await page('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    await page('Page.navigate', { url });
    await pause(settleMs);
    if (script !== undefined) {
      await page('Runtime.evaluate', { expression: script });
      await pause(settleMs / 2);
    }
    const { data } = await page('Page.captureScreenshot', { format: 'png' });
    await writeFile(file, Buffer.from(String(data), 'base64'));
    await send('Target.closeTarget', { targetId });
  };
}
