import { releaseBytes } from '../../shared/lifecycle/release-bytes.ts';

/** The bytes of a body that arrives in parts. */
export interface ByteBlocks {
  readonly length: number;
  /** Stores a copy of the part's bytes. */
  add(part: Buffer): void;
  /** Returns all bytes and starts over. */
  take(): Buffer;
  /** Discards all bytes and starts over. */
  clear(): void;
}

const BLOCK_MIN = 1_024;
const BLOCK_MAX = 64 * 1024;

/**
 * Copies arriving parts into its own blocks. The parts themselves are not kept: a client may send one byte per part,
 * and a Buffer takes some 380 bytes of memory, so a body of 20 MiB would take 7 GB.
 */
export function createByteBlocks(): ByteBlocks {
  let blocks: Buffer[] = [];
  /** Unused bytes in the last block. */
  let free = 0;
  let length = 0;

  function clear(): void {
    blocks = [];
    free = 0;
    length = 0;
  }

  return {
    clear,

    get length() {
      return length;
    },

    add(part) {
      for (let from = 0; from < part.length;) {
        let block = blocks.at(-1);
        if (block === undefined || free === 0) {
          free = Math.max(part.length - from, Math.min(BLOCK_MAX, Math.max(BLOCK_MIN, length)));
          block = Buffer.allocUnsafe(free);
          blocks.push(block);
        }
        const copied = part.copy(block, block.length - free, from);
        free -= copied;
        from += copied;
        length += copied;
      }
    },

    take() {
      const [first] = blocks;
      if (blocks.length === 1 && first !== undefined) {
        const bytes = first.subarray(0, length);
        clear();
        return bytes;
      }
      const bytes = Buffer.concat(blocks, length);
      blocks.forEach(releaseBytes);
      clear();
      return bytes;
    },
  };
}
