/** Wrong arguments, as of most commands: a task that has failed ends with 1. */
const WRONG = 2;

/** `parseArgs` goes on with advice that no option here needs. */
function sentenceOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/\. To specify a positional argument .*$/s, '.');
}

/**
 * Reads the arguments of a command. `--help` prints its usage; what cannot be read is a sentence and the usage. Both have
 * an exit code in place of what was read.
 */
export function readArguments<T>(
  usage: string,
  args: string[],
  read: (args: string[]) => T,
): { options: T } | { exitCode: number } {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${usage}\n`);
    return { exitCode: 0 };
  }
  try {
    return { options: read(args) };
  } catch (error) {
    process.stderr.write(`${sentenceOf(error)}\n\n${usage}\n`);
    return { exitCode: WRONG };
  }
}
