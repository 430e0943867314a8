import type { Socket } from 'node:net';

import { buildConnector } from 'undici';

import type { ScheduleRead } from './http-call.ts';
import { skipContinue } from './interim-answers.ts';

/** A connection that can be left unread for a while. */
export interface PacedSocket {
  /** From now on reads when `later` calls back. Undefined: as soon as something comes. */
  pace(later: ScheduleRead | undefined): void;
  /** An answer has ended; another call may follow. */
  rest(): void;
  /** Whether the connection has brought an answer before, and not a byte since: its server may have given it up. */
  isStale(): boolean;
}

export interface PacedSockets {
  /** For undici. */
  connect: buildConnector.connector;
  /** The connection whose data or end undici is handling; undefined: it speaks HTTP/2, where many calls share one. */
  current(): PacedSocket | undefined;
}

/** The stream's high-water mark. With one byte Node.js stops after each part and calls `_read` when it has been taken. */
const ONE_PART = 1;

function paceable(socket: Socket): PacedSocket {
  const answers = skipContinue(socket);
  const read = socket._read.bind(socket);
  let hasServed = false;
  let later: ScheduleRead | undefined;
  let readOn: (() => void) | undefined;

  socket._read = (size) => {
    if (later === undefined) {
      read(size);
      return;
    }
    const act = () => {
      if (readOn !== act) return;
      readOn = undefined;
      if (!socket.destroyed) read(size);
    };
    readOn = act;
    later(act);
  };

  return {
    pace(wanted) {
      later = wanted;
      if (later === undefined) readOn?.();
    },
    rest() {
      hasServed = true;
      answers.next();
    },
    isStale: () => hasServed && !answers.hasBegun(),
  };
}

/**
 * Connections whose reads can wait. A read, with all that follows from it, costs as much for the text of 80 ms as for that
 * of 20 ms (docs/decisions/0006-answer-streams.md).
 */
export function createPacedSockets(options: buildConnector.BuildOptions): PacedSockets {
  // undici passes the option on, although its types do not have it.
  const roomForOne = { ...options, highWaterMark: ONE_PART };
  const connect = buildConnector(roomForOne);
  let current: PacedSocket | undefined;
  return {
    current: () => current,
    connect(target, callback) {
      connect(target, (...connected) => {
        const [error, socket] = connected;
        if (error !== null || ('alpnProtocol' in socket && socket.alpnProtocol === 'h2')) {
          callback(...connected);
          return;
        }
        const paced = paceable(socket);
        const enter = () => {
          current = paced;
        };
        const leave = () => {
          current = undefined;
        };
        socket.on('readable', enter).on('error', enter).on('close', enter);
        // undici listens from here on, between the two.
        callback(...connected);
        socket.on('readable', leave).on('error', leave).on('close', leave);
      });
    },
  };
}
