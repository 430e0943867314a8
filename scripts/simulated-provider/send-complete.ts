import { resetConnection, sendJson } from './http-io.ts';
import type { Reply } from './reply.ts';
import { bookUsage, breaksOff, failBeforeHead, RESET_PAUSE_MS } from './reply.ts';
import type { Schedule } from './schedule.ts';
import { createSchedule } from './schedule.ts';

/** Sends the answer as one JSON body, when a stream would have sent its last text. */
export function sendComplete(reply: Reply): void {
  const { res, answers, settings, failure, book } = reply;
  const schedule = createSchedule(settings);
  const send = (): void => {
    if (breaksOff(failure)) failReader(reply, schedule);
    else finish(reply);
  };
  res.on('close', () => {
    schedule.cancel();
    book.end(failure === 'stall' ? 'failed' : 'aborted');
  });
  if (!schedule.waits(Math.max(0, ...answers.map(({ deltas }) => deltas.length - 1)), send)) send();
}

function finish(reply: Reply): void {
  const { res, answers, book } = reply;
  const tokens = answers.reduce((sum, { completionTokens }) => sum + completionTokens, 0);
  if (tokens > 0) book.text(tokens);
  const body = reply.dialect.complete(reply, bookUsage(reply, tokens));
  book.end('completed');
  sendJson(res, 200, body);
}

/** Nothing is booked as sent: no caller can use half a JSON body. */
function failReader(reply: Reply, schedule: Schedule): void {
  const { res, head, failure, settings, book } = reply;
  const { failAfter } = settings;
  if (failAfter < 0 || (failAfter === 0 && (failure === 'reset' || failure === 'stall'))) {
    failBeforeHead(reply);
    return;
  }
  const body = reply.dialect.complete(reply, undefined);
  const half = body.slice(0, body.length / 2);
  if (failure !== 'stall') book.end('failed');
  if (failure === 'malformed') {
    sendJson(res, 200, { id: head.id, object: 'chat.completion', choices: 'malformed on purpose' });
  } else if (failure === 'truncate') {
    sendJson(res, 200, half);
  } else {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    res.write(half);
    if (failure === 'reset') {
      schedule.after(RESET_PAUSE_MS, () => {
        resetConnection(res);
      });
    }
  }
}
