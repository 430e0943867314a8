import { resetConnection, sendJson } from './http-io.ts';
import { bookUsage, breaksOff, failBeforeHead, RESET_PAUSE_MS } from './reply.ts';
import type { Reply, StreamEvents } from './reply.ts';
import { createSchedule } from './schedule.ts';
import type { Schedule } from './schedule.ts';

/** Sends the answer as one JSON body, when a stream would have sent its last text. */
export function sendComplete(reply: Reply): void {
  const { res, answers, settings, failure } = reply;
  const schedule = createSchedule(settings, res);
  const send = (): void => {
    if (breaksOff(failure)) breakBody(reply, schedule);
    else finish(reply);
  };
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
function breakBody(reply: Reply, schedule: Schedule): void {
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

const HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };
const MALFORMED_EVENT = 'data: {"id":"malformed on purpose","choices":[{"index":0,"delta":{"content":\n\n';

/** Streams the answer, with usage if it was requested. */
export function sendStream(reply: Reply, includeUsage: boolean): void {
  const { res, settings, failure, book } = reply;
  const schedule = createSchedule(settings, res);
  if (breaksOff(failure) && settings.failAfter < 0) {
    failBeforeHead(reply);
    return;
  }
  const events = reply.dialect.events(reply, includeUsage);
  res.writeHead(200, HEADERS);
  res.write(events.begin(reply.answers));
  sendTexts(reply, events, schedule, (tokensSent) => {
    const finish = (): void => {
      const end = events.end(reply.answers, bookUsage(reply, tokensSent));
      book.end('completed');
      res.end(end);
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
  { res, answers, failure, settings, book }: Reply,
  events: StreamEvents,
  schedule: Schedule,
  onSent: (tokensSent: number) => void,
): void {
  const broken = breaksOff(failure);
  const all = answers.flatMap(({ deltas }, index) => deltas.map((delta) => ({ delta, index })));
  const deltas = broken ? all.slice(0, settings.failAfter) : all;
  let sent = 0;
  let tokensSent = 0;

  function sendDue(): void {
    for (let due = deltas[sent]; due !== undefined; due = deltas[sent]) {
      if (res.destroyed || schedule.waits(sent, sendDue)) return;
      const { delta, index } = due;
      const goesOn = res.write(events.delta(delta, index));
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
