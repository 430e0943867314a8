import { CHAT_LIMITS } from '../../shared/contracts/chat-request.ts';
import { createPartialText, isBlank } from './piece.ts';
import type { Piece, Splitter } from './piece.ts';

const LINE_FEED = 0x0a;

/** Cuts an NDJSON body at its line feeds. Blank lines are left out, and counted, so that the numbers are an editor's. */
export function createLineSplitter(): Splitter {
  const text = createPartialText(CHAT_LIMITS.bodyBytesMax);
  let number = 0;

  function* line(): Iterable<Piece> {
    number += 1;
    const json = text.take();
    if (json?.every(isBlank) !== true) yield { place: { name: `Line ${number}` }, json };
  }

  return {
    isWhole: false,

    *push(part) {
      let from = 0;
      for (;;) {
        const end = part.indexOf(LINE_FEED, from);
        if (end === -1) break;
        text.add(part.subarray(from, end));
        yield* line();
        from = end + 1;
      }
      text.add(part.subarray(from));
    },

    end: line,

    metadata: () => undefined,
  };
}
