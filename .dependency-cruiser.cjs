/** The import rules of docs/architecture.md, all errors. */
const only = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });
const door = (library, allowed) =>
  only(
    `one-door-for-${library}`,
    `${library} is imported only in ${allowed.join(', ')}.`,
    { path: '^(api|workers|shared)/', pathNot: allowed.map((folder) => `^${folder}/`) },
    { path: `^node_modules/${library}(/|$)` },
  );

const STAGES = 'claim|build-prompt|moderate|generate|finish';

module.exports = {
  forbidden: [
    only('no-cycles', 'No import cycles, type-only ones included.', {}, { circular: true }),
    only(
      'api-and-workers-meet-in-shared',
      'The two processes share code through shared/ only.',
      { path: '^api/' },
      { path: '^workers/' },
    ),
    only(
      'workers-and-api-meet-in-shared',
      'The two processes share code through shared/ only.',
      { path: '^workers/' },
      { path: '^api/' },
    ),
    only(
      'shared-knows-no-process',
      'shared/ imports nothing of a process.',
      { path: '^shared/' },
      { path: '^(api|workers|scripts|test)/' },
    ),
    only(
      'core-is-pure',
      'contracts, domain and errors import no package but joi and image-dimensions.',
      { path: '^shared/(contracts|domain|errors)/' },
      {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer'],
        pathNot: '^node_modules/(joi|image-dimensions)/',
      },
    ),
    only(
      'core-does-no-io',
      'contracts, domain and errors use no Node module but crypto and nothing that does I/O.',
      { path: '^shared/(contracts|domain|errors)/' },
      { path: '^shared/(redis|requests|mongo|queue|http|metrics|tracing|logging|config|lifecycle)/' },
    ),
    only(
      'core-uses-no-node',
      'contracts, domain and errors use no Node module but crypto.',
      { path: '^shared/(contracts|domain|errors)/' },
      { dependencyTypes: ['core'], pathNot: '^(node:)?crypto$' },
    ),
    door('express', ['api']),
    door('mongoose', ['shared/mongo']),
    door('ioredis', ['shared/redis']),
    door('bullmq', ['shared/queue', 'workers/queue']),
    door('axios', ['workers/providers']),
    door('p-retry', ['workers/providers']),
    door('undici', ['shared/http', 'workers/providers']),
    door('winston', ['shared/logging']),
    door('prom-client', ['shared/metrics']),
    door('@opentelemetry', ['shared/tracing']),
    door('stripe', ['api/payments/stripe']),
    door('yazl', ['workers/compliance']),
    only(
      'stages-do-not-call-stages',
      'A stage imports stage.ts only; the order stands there.',
      { path: `^workers/pipeline/(${STAGES})\\.ts$` },
      { path: `^workers/pipeline/(${STAGES})\\.ts$` },
    ),
    only(
      'only-main-composes',
      'compose.ts is imported by its main.ts and by tests.',
      { pathNot: '^((api|workers)/main\\.ts$|test/)' },
      { path: '^(api|workers)/compose\\.ts$' },
    ),
    {
      name: 'product-is-reachable',
      comment: 'Every file of the product is reached from the main.ts of a process.',
      severity: 'error',
      from: { path: '^(api|workers)/main\\.ts$' },
      to: { path: '^(api|workers|shared)/', pathNot: '/main\\.ts$', reachable: false },
    },
    only(
      'scripts-are-leaves',
      'Nothing imports a script but its tests.',
      { pathNot: '^(scripts|test)/' },
      { path: '^scripts/' },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(dist|\\.data)/' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.mjs', '.cjs'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
