import { errorCodeOf } from '../../shared/http/resolve-name.ts';

/** Where Ollama listens unless told otherwise. */
export const OLLAMA_URL = 'http://127.0.0.1:11434/v1';

const TIMEOUT_MS = 10_000;
/** For a server that does not tell. Histories are cut to it, so a guess that is too large costs answers, not memory. */
const CONTEXT_WINDOW_UNTOLD = 8_192;
const NAMED_MAX = 20;

/** A server that speaks OpenAI's protocol, as the settings name it. */
export interface ServerSettings {
  url: string;
  model: string | undefined;
  key: string | undefined;
}

/** A model that answers the demo's requests. */
export interface ServedModel {
  url: string;
  key: string | undefined;
  model: string;
  contextWindow: number;
}

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? { ...value } : {});

/** Rejects as `fetch` does. */
async function getJson(url: string, key: string | undefined, timeoutMs = TIMEOUT_MS) {
  const headers: Record<string, string> = key === undefined ? {} : { Authorization: `Bearer ${key}` };
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(timeoutMs) });
  const body: unknown = await response.json().catch(() => undefined);
  return { status: response.status, body: fieldsOf(body) };
}

function modelsIn({ data }: Fields): Fields[] {
  return (Array.isArray(data) ? data : []).map(fieldsOf).filter(({ id }) => typeof id === 'string' && id !== '');
}

/** The names of a server's models; empty where none answers in time. */
export async function modelNamesAt(url: string, timeoutMs: number): Promise<string[]> {
  const { body } = await getJson(`${url}/models`, undefined, timeoutMs).catch(() => ({ body: {} }));
  return modelsIn(body).map(({ id }) => String(id));
}

/** Asks the server of `PROVIDER_URL` for its models. Rejects with a sentence that says which setting to change. */
export async function findModel({ url, model, key }: ServerSettings): Promise<ServedModel> {
  const { status, body } = await getJson(`${url}/models`, key).catch((error: unknown) => {
    const reason = errorCodeOf(error) || (error instanceof Error ? error.message : String(error));
    throw new Error(
      `Nothing answers at ${url}/models (${reason}): start the model server, or set PROVIDER_URL to where it listens. Ollama's is ${OLLAMA_URL}.`,
      { cause: error },
    );
  });
  if (status === 401 || status === 403)
    throw new Error(`${url}/models answers ${status}: set PROVIDER_KEY to a key of that server.`);
  const models = modelsIn(body);
  const names = models.map(({ id }) => String(id));
  if (names.length === 0)
    throw new Error(
      `${url}/models names no model (status ${status}): set PROVIDER_URL to the base of an OpenAI-compatible API with a model, which mostly ends in /v1.`,
    );
  const listed = `${names.slice(0, NAMED_MAX).join(', ')}${names.length > NAMED_MAX ? ', …' : ''}`;
  if (model === undefined && names.length > 1)
    throw new Error(`${url} has ${names.length} models: set PROVIDER_MODEL to one of ${listed}.`);
  // Ollama lists a model with its tag, and takes it without.
  const chosen = model === undefined ? models[0] : models.find(({ id }) => id === model || id === `${model}:latest`);
  if (chosen === undefined) throw new Error(`${url} has no model "${model}": set PROVIDER_MODEL to one of ${listed}.`);
  return { url, key, model: String(chosen['id']), contextWindow: await windowOf(url, key, chosen) };
}

/** As llama-server, vLLM, Groq and OpenRouter say it in their lists, and an older llama-server at `/props`. */
async function windowOf(url: string, key: string | undefined, model: Fields): Promise<number> {
  const { n_ctx: ofLlama } = fieldsOf(model['meta']);
  const told = [ofLlama, model['max_model_len'], model['context_window'], model['context_length']].find(isWindow);
  if (told !== undefined || model['owned_by'] !== 'llamacpp') return told ?? CONTEXT_WINDOW_UNTOLD;
  const props = await getJson(new URL('/props', url).href, key).catch(() => ({ body: {} }));
  const { n_ctx: ofSlot } = fieldsOf(fieldsOf(props.body)['default_generation_settings']);
  return isWindow(ofSlot) ? ofSlot : CONTEXT_WINDOW_UNTOLD;
}

const isWindow = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0;
