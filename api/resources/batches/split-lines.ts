import { CHAT_LIMITS } from '../../../shared/contracts/chat-request.ts';
import { createPartialText, isBlank } from './line-buffer.ts';
import type { Piece, Splitter } from './line-buffer.ts';

const LINE_FEED = 0x0a;

/**
 * Splits an NDJSON body at its line feeds. Blank lines are skipped but counted, so that line numbers match an editor's.
 * A body may have fifty million of them, so each costs one look at a byte and nothing else.
 */
export function createLineSplitter(): Splitter {
  const text = createPartialText(CHAT_LIMITS.bodyBytesMax);
  let number = 1;
  /** Only blanks of the current line have arrived so far. */
  let isEmpty = true;

  /** The index of the first byte that is not blank. */
  function behindBlanks(part: Buffer, from: number): number {
    let index = from;
    for (; isBlank(part[index]); index += 1) if (part[index] === LINE_FEED) number += 1;
    return index;
  }

  function line(): Piece {
    isEmpty = true;
    return { place: { name: `Line ${number}` }, json: text.take() };
  }

  return {
    isWhole: false,

    *push(part) {
      let from = 0;
      while (from < part.length) {
        if (isEmpty) from = behindBlanks(part, from);
        if (from === part.length) return;
        isEmpty = false;
        const end = part.indexOf(LINE_FEED, from);
        text.add(part.subarray(from, end === -1 ? undefined : end));
        if (end === -1) return;
        yield line();
        number += 1;
        from = end + 1;
      }
    },

    *end() {
      if (!isEmpty) yield line();
    },

    metadata: () => undefined,
    heldBytes: text.heldBytes,
  };
}
