/** The usual exit code for wrong arguments; a failed task ends with 1. */
const WRONG = 2;

/** Cuts off `parseArgs`'s advice, which none of the options here needs. */
function sentenceOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/\. To specify a positional argument .*$/s, '.');
}

/**
 * Reads the arguments of a command. `--help` prints the usage; if the arguments are wrong, a sentence and the usage are
 * printed. Both return an exit code instead of options.
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

/** The number given to a command's option; throws an error of one sentence that names the option. */
export function readNumber(name: string, text: string, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
  throw new Error(`--${name} must be a whole number from 1 to ${max}, not "${text}".`);
}
