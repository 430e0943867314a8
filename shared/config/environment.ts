/** The environment of this process; the only place that reads it. */
export const environment: Record<string, string | undefined> = process.env;
