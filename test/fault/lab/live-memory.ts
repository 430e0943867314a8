import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

const POLL_MS = 50;
const OPEN_MS = 15_000;
const GC_ROUNDS = 2;

interface Reply {
  id?: number;
  result?: { usedSize?: number; backingStorageSize?: number };
}

/**
 * Bytes that a Node.js process still needs after a garbage collection, buffers included: resident memory also holds
 * what V8 has not given back yet. Asks by the inspector, which SIGUSR1 opens; needs `--inspect-port=0`, and the file
 * that takes the process's standard error.
 */
export async function liveBytes(pid: number, stderrFile: string): Promise<number> {
  const socket = new WebSocket(await inspectorOf(pid, stderrFile));
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => {
      reject(new Error(`The inspector of process ${pid} cannot be reached.`));
    });
  });
  try {
    for (let round = 0; round < GC_ROUNDS; round += 1) await ask(socket, 'HeapProfiler.collectGarbage');
    const { usedSize = 0, backingStorageSize = 0 } = await ask(socket, 'Runtime.getHeapUsage');
    return usedSize + backingStorageSize;
  } finally {
    socket.close();
  }
}

async function inspectorOf(pid: number, stderrFile: string): Promise<string> {
  process.kill(pid, 'SIGUSR1');
  const deadline = performance.now() + OPEN_MS;
  while (performance.now() < deadline) {
    const address = /^Debugger listening on (ws:\S+)$/m.exec(await readFile(stderrFile, 'utf8'))?.[1];
    if (address !== undefined) return address;
    await pause(POLL_MS);
  }
  throw new Error(`Process ${pid} has not opened its inspector.`);
}

let asked = 0;

function ask(socket: WebSocket, method: string): Promise<NonNullable<Reply['result']>> {
  const id = (asked += 1);
  return new Promise((resolve, reject) => {
    const onMessage = ({ data }: MessageEvent) => {
      // The inspector's protocol.
      const reply = JSON.parse(String(data)) as Reply;
      if (reply.id !== id) return;
      socket.removeEventListener('message', onMessage);
      if (reply.result === undefined) reject(new Error(`The inspector refused ${method}.`));
      else resolve(reply.result);
    };
    socket.addEventListener('message', onMessage);
    socket.send(JSON.stringify({ id, method }));
  });
}
