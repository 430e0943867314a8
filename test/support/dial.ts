import { connect } from 'node:net';

import { waitFor } from './wait-for.ts';

/** A client that says what it likes, `first` at once, and reads all that comes. */
export function dial(port: number, first = '') {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('error', () => undefined);
  socket.on('data', (part: string) => (text += part));
  const ended = new Promise<string>((resolve) => {
    socket.on('close', () => {
      resolve(text);
    });
  });
  if (first !== '') socket.write(first);
  return {
    socket,
    ended,
    heard: (part: string) => waitFor(() => (text.includes(part) ? true : undefined), `«${part}»`),
    text: () => text,
  };
}
