/**
 * Gives a buffer's memory back at once. Until a garbage collection it would stay taken, so that the next buffer gets pages
 * that the system has yet to bring; and V8 collects its whole heap whenever buffers have grown by 64 MiB. One that shares
 * its memory with others stays.
 *
 * Only for whoever made it, and once nobody reads it any more: a write that is under way would send what others put there.
 */
export function releaseBytes({ buffer, byteLength }: ArrayBufferView): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) buffer.transfer(0);
}
