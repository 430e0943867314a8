/**
 * Gives a buffer's memory back at once. Otherwise the memory stays taken until a garbage collection, the next buffer
 * needs new pages from the system, and V8 collects its whole heap whenever buffers have grown by 64 MiB. A buffer that
 * shares its memory with others is left alone.
 *
 * Only for the code that made the buffer, once nobody reads it any more: a pending write would send others' data.
 */
export function releaseBytes({ buffer, byteLength }: ArrayBufferView): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) buffer.transfer(0);
}
