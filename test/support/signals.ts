import { getEventListeners } from 'node:events';

/** How many listeners wait for an abort: those that stay after a call are a leak. */
export function listenersOf(signal: AbortSignal): number {
  return getEventListeners(signal, 'abort').length;
}
