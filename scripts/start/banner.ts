import type { DemoProvider } from './demo-routes.ts';
import type { DemoTenant } from './demo-tenant.ts';
import { OLLAMA_URL } from './model-server.ts';
import type { StartSettings } from './settings.ts';

interface Banner {
  settings: StartSettings;
  tenant: DemoTenant;
  adminToken: string;
  providers: readonly DemoProvider[];
  /** The models of an Ollama that runs on this machine and is not used. */
  ollama: readonly string[];
}

/** A small model is slow, and does not always find an end. */
const LOCAL_TOKENS = 200;

/** What a new user needs for the first requests. */
export function renderBanner({ settings, tenant, adminToken, providers, ollama }: Banner): string {
  const { baseUrl, adminUrl, answers } = settings;
  const limit = answers.from === 'local' ? { max_tokens: LOCAL_TOKENS } : {};
  return [
    '',
    'Parley is ready.',
    '',
    `  Console       ${baseUrl}/console/ (sign in with the live key)`,
    `  Operators     ${adminUrl}/admin/console/ (sign in with the admin token)`,
    `  Answers from  ${describeAnswers(settings, providers)}`,
    `  Base URL      ${baseUrl}/platform/v1`,
    `  Models        mobius, oloid`,
    `  Live key      ${tenant.liveKey.value}`,
    `  Test key      ${tenant.testKey.value}`,
    `  API           ${baseUrl}/docs/ (paste the live key under "Authorize")`,
    `  Admin token   ${adminToken}`,
    '',
    'A complete answer:',
    '',
    curl(settings, tenant, "-sS -w '\\n'", '/chat', {
      messages: [{ role: 'user', content: 'What is a conversation?' }],
      ...limit,
    }),
    '',
    'A stream, remembered for the entity "visitor-1":',
    '',
    curl(settings, tenant, '-sSN', '/chat/stream', {
      entity_id: 'visitor-1',
      messages: [{ role: 'user', content: 'Tell me about bridges.' }],
      ...limit,
    }),
    '',
    "OpenAI's clients, in any language, need two variables; with Node.js, in this folder:",
    '',
    `export OPENAI_BASE_URL=${baseUrl}/platform/v1 OPENAI_API_KEY=${tenant.liveKey.value}`,
    'node --input-type=module -e \'import OpenAI from "openai";',
    'const messages = [{ role: "user", content: "What is a conversation?" }];',
    `console.log((await new OpenAI().chat.completions.create(${snippetBody(limit)})).choices[0].message.content);'`,
    '',
    ...(answers.from === 'simulated' ? [...renderAlternatives(ollama), ''] : []),
    'The log follows; Ctrl-C stops everything.',
    '',
  ].join('\n');
}

/** Says who answers, and who charges for it. */
function describeAnswers({ answers }: StartSettings, providers: readonly DemoProvider[]): string {
  const unless = '(unless an administrator has changed the routes)';
  if (answers.from === 'simulated') return `a simulation: no model runs, each answer shows what it was asked ${unless}`;
  const named = providers.map(({ name, models: { mobius, oloid } }) => {
    const models = mobius === oloid ? mobius : `mobius: ${mobius}, oloid: ${oloid}`;
    return `${name} (${models})`;
  });
  if (answers.from === 'keys')
    return `${named.join(', then ')}. EACH REQUEST IS PAID THERE, with the key in your environment ${unless}`;
  const where = providers.map(({ body, contextWindow }) => `${body.base_url}, context of ${contextWindow} tokens`);
  return `${named.join()} at ${where.join()} ${unless}`;
}

function renderAlternatives(ollama: readonly string[]): string[] {
  const [model] = ollama;
  const own = `PROVIDER_URL=${OLLAMA_URL} PROVIDER_MODEL=${model ?? 'llama3.2'} npm start`;
  const about =
    model === undefined
      ? 'your Ollama, vLLM or llama-server, at its address'
      : `the Ollama that runs here; it has ${ollama.join(', ')}`;
  return [
    'For the answers of a real model, stop this and start again with one of these:',
    '',
    `${own}   # ${about}`,
    'npm start -- --local   # a small model on this machine; the first start downloads 127 MB',
    'OPENAI_API_KEY=sk-... npm start   # or ANTHROPIC_API_KEY; each request is paid there',
  ];
}

const snippetBody = (limit: object) =>
  `{ model: "mobius", messages${'max_tokens' in limit ? `, max_tokens: ${LOCAL_TOKENS}` : ''} }`;

/** One line, to be pasted into any Bourne-like shell; the texts above contain no quotes. */
function curl({ baseUrl }: StartSettings, { liveKey }: DemoTenant, flags: string, path: string, body: object): string {
  const insecure = baseUrl.startsWith('https:') ? ' -k' : '';
  return (
    `curl ${flags}${insecure} ${baseUrl}/platform/v1${path} -H 'Authorization: Bearer ${liveKey.value}' ` +
    `-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`
  );
}
