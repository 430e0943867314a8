import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Requests whose clients wait to be asked for the body. */
const unasked = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Answers `Expect: 100-continue` (RFC 9110 section 10.1.1) once somebody reads the body, which is behind all checks that need
 * none. Node would ask for it at once. A client that gets its refusal instead does not send the body, and Node closes the
 * connection behind that answer. Other expectations are ignored; Node's own 417 has no error object.
 */
export function expectLate(server: Server): void {
  server.on('checkContinue', (req, res) => {
    unasked.set(req, res);
    req.once('resume', () => {
      askForBody(req);
    });
    server.emit('request', req, res);
  });
  server.on('checkExpectation', (req, res) => server.emit('request', req, res));
}

/** Call it before a body is read other than by its `data` events. Safe to repeat. */
export function askForBody(req: IncomingMessage): void {
  const res = unasked.get(req);
  unasked.delete(req);
  // What is discarded behind an answer was not asked for.
  if (res?.headersSent === false) res.writeContinue();
}

/** Whether the body will not come, because its client was not asked for it. */
export function isUnasked(req: IncomingMessage): boolean {
  return unasked.has(req);
}
