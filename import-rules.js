/** The import rules of docs/architecture.md that one import can break, as a rule of ESLint. */
import { isBuiltin } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';

const only = (from, to, message) => ({ from, to, message });
const door = (library, ...allowed) =>
  only(
    new RegExp(`^(?!(?:${allowed.join('|')})/)(?:api|workers|shared)/`, 'u'),
    new RegExp(`^npm:${library}(?:/|$)`, 'u'),
    `${library} is imported only in ${allowed.join(', ')}.`,
  );

const CORE = /^shared\/(?:contracts|domain|errors)\//u;
const STAGE = /^workers\/pipeline\/(?:claim|build-prompt|moderate|generate|finish)\.ts$/u;

/** A file that `from` matches imports nothing that `to` matches. */
const RULES = [
  only(/^api\//u, /^workers\//u, 'The two processes share code through shared/ only.'),
  only(/^workers\//u, /^api\//u, 'The two processes share code through shared/ only.'),
  only(/^shared\//u, /^(?:api|workers|scripts|test)\//u, 'shared/ imports nothing of a process.'),
  only(CORE, /^npm:(?!(?:joi|image-dimensions)$)/u, 'The core imports no package but joi and image-dimensions.'),
  only(CORE, /^node:(?!crypto$)/u, 'The core uses no Node.js module but crypto.'),
  only(
    CORE,
    /^shared\/(?:redis|requests|mongo|queue|http|metrics|tracing|logging|config|lifecycle)\//u,
    'The core imports nothing that does I/O.',
  ),
  door('express', 'api'),
  door('mongoose', 'shared/mongo'),
  door('ioredis', 'shared/redis'),
  door('bullmq', 'shared/queue', 'workers/queue'),
  door('axios', 'workers/providers'),
  door('p-retry', 'workers/providers'),
  door('undici', 'shared/http', 'workers/providers'),
  door('winston', 'shared/logging'),
  door('prom-client', 'shared/metrics'),
  door('@opentelemetry', 'shared/tracing'),
  door('stripe', 'api/payments/stripe'),
  door('yazl', 'workers/compliance'),
  only(STAGE, STAGE, 'A stage imports stage.ts only; the order stands there.'),
  only(
    /^(?!(?:api|workers)\/main\.ts$|test\/)/u,
    /^(?:api|workers)\/compose\.ts$/u,
    'compose.ts is imported by its main.ts and by tests.',
  ),
  only(/^(?:api|workers)\//u, /^scripts\//u, 'The product imports no script.'),
];

/** An imported file by its path in the repository, a module of Node.js as `node:fs`, a package as `npm:joi`. */
function targetOf(from, name) {
  if (name.startsWith('.')) return join(dirname(from), name).replaceAll(sep, '/');
  return isBuiltin(name) ? `node:${name.replace(/^node:/u, '')}` : `npm:${name}`;
}

export const importRules = {
  create(context) {
    const from = relative(import.meta.dirname, context.filename).replaceAll(sep, '/');
    const rules = RULES.filter((rule) => rule.from.test(from));
    const check = ({ source }) => {
      if (typeof source?.value !== 'string') return;
      const broken = rules.find(({ to }) => to.test(targetOf(from, source.value)));
      if (broken !== undefined) context.report({ node: source, message: broken.message });
    };
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check,
      TSImportType: check,
    };
  },
};
