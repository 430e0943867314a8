import type { Socket } from 'node:net';

import { buildConnector } from 'undici';

import type { ReadLater } from './http-call.ts';

/** A connection that can be left unread for a while. */
export interface PacedSocket {
  /** From now on reads when `later` calls back. Undefined: as soon as something comes. */
  pace(later: ReadLater | undefined): void;
}

export interface PacedSockets {
  /** For undici. */
  connect: buildConnector.connector;
  /** The connection whose data undici is handling; undefined: it speaks HTTP/2, where many calls share one. */
  current(): PacedSocket | undefined;
}

/** The stream's high-water mark. With one byte Node.js stops after each part and calls `_read` when it has been taken. */
const ONE_PART = 1;

function paceable(socket: Socket): PacedSocket {
  const read = socket._read.bind(socket);
  let later: ReadLater | undefined;
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
  };
}

/**
 * Connections whose reads can wait. A read, with all that follows from it, costs as much for the text of 80 ms as for that
 * of 20 ms (docs/decisions/0081-live-streams-keep-time.md).
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
        socket.on('readable', () => {
          current = paced;
        });
        // undici listens from here on, between the two.
        callback(...connected);
        socket.on('readable', () => {
          current = undefined;
        });
      });
    },
  };
}
