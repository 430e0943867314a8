/** The usage of tasks that do not read their arguments themselves; the others print their own. */
const CONFIGURATION = 'docs/guide/configuration.md';
const USAGES = {
  start: `npm start [-- --workers N] [--local] [--demo]
  everything on one machine; --demo plays a week of traffic; --local has a small model answer, which the first such start downloads (127 MB); settings come from .env and the environment (${CONFIGURATION})`,
  dev: `npm run dev [-- --workers N] [--local]
  as npm start; each process is started again when one of its files changes`,
  'start:api': `npm run start:api
  one ingress; its settings come from the environment (${CONFIGURATION})`,
  'start:worker': `npm run start:worker
  one worker; its settings come from the environment (${CONFIGURATION})`,
  'test:clients': `npm run test:clients [-- ARGUMENTS OF JEST]
  the official clients in JavaScript and Python, which the first run installs, against real processes`,
  'test:console': `npm run test:console [-- ARGUMENTS OF JEST]
  every page of the console in Chromium, which has to be installed; PICTURES=docs takes the pictures of docs/console anew`,
  'test:providers': `npm run test:providers [-- ARGUMENTS OF JEST]
  the adapters against LiteLLM, the service with a model on llama.cpp's server, which the first run installs`,
  build: `npm run build
  compiles to dist/, and the console to console/dist/`,
  check: `npm run check
  formatting, lint, types, imports, dead code, unit tests, citations, the figures of house, known weaknesses`,
  citations: `npm run citations
  follows every citation and link`,
  house: `npm run house
  counts files, lines and other figures, and fails above a limit`,
  'config-docs': `npm run config-docs
  writes .env.example and the table of ${CONFIGURATION} from shared/config/settings.ts`,
  sbom: `npm run sbom [-- FILE]
  writes the software bill of materials, to sbom.cdx.json where no file is named`,
  audit: `npm run audit
  asks the registry for known weaknesses of the packages`,
};
/** How many arguments these tasks take; they take no options. */
const MOST = { 'start:api': 0, 'start:worker': 0, build: 0, check: 0, citations: 0, house: 0, sbom: 1, audit: 0 };
/** Exit code for wrong arguments, as in scripts/harness/read-arguments.ts. */
const WRONG = 2;

export const isHelp = (args) => args.includes('--help') || args.includes('-h');

/**
 * Handles `--help` and wrong arguments before installing or running. Returns the exit code; undefined: run the task.
 */
export function answerArguments(task, args) {
  const usage = USAGES[task];
  if (usage === undefined) return undefined;
  if (isHelp(args)) {
    console.log(usage);
    return 0;
  }
  const most = MOST[task];
  if (most === undefined) return undefined;
  const strange = args[most] ?? args.find((arg) => arg.startsWith('-'));
  if (strange === undefined) return undefined;
  console.error(`npm run ${task} does not take "${strange}".\n\n${usage}`);
  return WRONG;
}
