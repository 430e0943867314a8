import { resetConnection } from './http-io.ts';
import type { StreamEvents } from './openai-format.ts';
import { createStreamEvents, DONE_EVENT } from './openai-format.ts';
import type { Reply } from './reply.ts';
import { breaksOff, failBeforeHead, reportedUsage, RESET_PAUSE_MS } from './reply.ts';
import type { Schedule } from './schedule.ts';
import { createSchedule } from './schedule.ts';

const HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };
const MALFORMED_EVENT = 'data: {"id":"malformed on purpose","choices":[{"index":0,"delta":{"content":\n\n';

/** Streams the answer like OpenAI, with usage if it was requested. */
export function sendStream(reply: Reply, includeUsage: boolean): void {
  const { res, settings, failure, book } = reply;
  const schedule = createSchedule(settings);
  res.on('close', () => {
    schedule.cancel();
    book.end(failure === 'stall' ? 'failed' : 'aborted');
  });
  if (breaksOff(failure) && settings.failAfter < 0) {
    failBeforeHead(reply);
    return;
  }
  const events = createStreamEvents(reply.head, includeUsage);
  res.writeHead(200, HEADERS);
  res.write(events.role);
  sendTexts(reply, events, schedule, (tokensSent) => {
    const finish = (): void => {
      const usage = includeUsage ? reportedUsage(reply, tokensSent) : undefined;
      res.write(events.finish(reply.answer.finishReason));
      if (usage !== undefined) res.write(events.usage(usage));
      book.end('completed');
      res.end(DONE_EVENT);
    };
    if (breaksOff(failure)) failReader(reply, schedule, finish);
    else finish();
  });
}

/**
 * Sends each delta, or each one before a failure, when it is due, then calls `onSent`. A slow reader delays this, so
 * that only text that was taken is booked. Everything written in one tick leaves in one system call, because Node corks
 * the socket by itself; an additional `res.cork()` breaks the reply on Node 24.
 */
function sendTexts(
  { res, answer, failure, settings, book }: Reply,
  events: StreamEvents,
  schedule: Schedule,
  onSent: (tokensSent: number) => void,
): void {
  const broken = breaksOff(failure);
  const deltas = broken ? answer.deltas.slice(0, settings.failAfter) : answer.deltas;
  let sent = 0;
  let tokensSent = 0;

  function sendDue(): void {
    for (let delta = deltas[sent]; delta !== undefined; delta = deltas[sent]) {
      if (res.destroyed || schedule.waits(sent, sendDue)) return;
      const goesOn = res.write(events.text(delta.text));
      book.text(delta.tokens);
      sent += 1;
      tokensSent += delta.tokens;
      if (!goesOn) {
        res.once('drain', sendDue);
        return;
      }
    }
    // The finish follows the last text at once; a failure comes when the missing text would have been due.
    const isDue = sent > 0 && !broken;
    if (isDue || !schedule.waits(sent, sendDue)) onSent(tokensSent);
  }

  sendDue();
}

function failReader({ res, failure, book }: Reply, schedule: Schedule, finish: () => void): void {
  if (failure === 'stall') return;
  // The book is closed before the caller sees anything, so `finish` can no longer change it.
  book.end('failed');
  if (failure === 'reset') {
    schedule.after(RESET_PAUSE_MS, () => {
      resetConnection(res);
    });
  } else if (failure === 'truncate') {
    res.end();
  } else {
    res.write(MALFORMED_EVENT);
    finish();
  }
}
