import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Requests whose clients wait to be asked for the body. */
const unasked = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Answers `Expect: 100-continue` (RFC 9110 section 10.1.1) once somebody reads the body, which is after all checks that
 * do not need it. Node would ask for the body at once. A client that is refused instead does not send it, and Node
 * closes the connection after that answer. Other expectations are ignored, because Node's own 417 has no error object.
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

/** Call this before reading a body in any way but through its `data` events. Safe to repeat. */
export function askForBody(req: IncomingMessage): void {
  const res = unasked.get(req);
  unasked.delete(req);
  // A body that is only discarded, after its answer, must not be asked for.
  if (res?.headersSent === false) res.writeContinue();
}

/** Whether the body will not come because its client was never asked for it. */
export function isUnasked(req: IncomingMessage): boolean {
  return unasked.has(req);
}
