/** With Redis away a caller gets its 503 within 2 s (design.md section 3). */
const CALL_MS = 1_500;

/**
 * Gives up on a call after a time, counted from now. ioredis limits a command from when it is sent; one that waits
 * behind a pipeline that gets no answer, or for a connection, would wait longer. The call may still happen.
 */
export async function inTime<Result>(call: Promise<Result>, timeoutMs = CALL_MS): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error('Command timed out'));
  }, timeoutMs);
  try {
    return await Promise.race([call, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
