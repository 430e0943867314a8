interface Waiting<Row> {
  row: Row;
  resolve: () => void;
  reject: (reason: unknown) => void;
}

/**
 * Writes together what comes while a write is under way: one alone goes at once, and a thousand at once cost a few calls.
 * Where a write fails, so does whatever waits behind it, so that nobody waits for a database twice.
 */
export function groupWrites<Row>(
  write: (rows: readonly Row[]) => Promise<void>,
  rowsMax: number,
): (row: Row) => Promise<void> {
  let waiting: Waiting<Row>[] = [];
  let isWriting = false;

  async function writeAll(): Promise<void> {
    isWriting = true;
    while (waiting.length > 0) {
      const group = waiting.splice(0, rowsMax);
      try {
        await write(group.map(({ row }) => row));
        for (const { resolve } of group) resolve();
      } catch (error) {
        const failed = [...group, ...waiting];
        waiting = [];
        for (const { reject } of failed) reject(error);
      }
    }
    isWriting = false;
  }

  return (row) =>
    new Promise((resolve, reject) => {
      waiting.push({ row, resolve, reject });
      if (!isWriting) void writeAll();
    });
}
