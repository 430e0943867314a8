import type { ChatMessage, Sampling } from '../../../shared/contracts/chat-request.ts';
import type { Provider } from '../../../shared/domain/routing/routing.ts';
import { wellFormedJson } from '../../../shared/contracts/well-formed-json.ts';
import { perProvider } from '../provider.ts';
import type { ProviderCall } from '../provider.ts';

function samplingFields(sampling: Sampling): Record<string, unknown> {
  const { temperature, topP, stop, seed, user } = sampling;
  const { frequencyPenalty, presencePenalty, reasoningEffort, verbosity } = sampling;
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stop === undefined ? {} : { stop }),
    ...(seed === undefined ? {} : { seed }),
    ...(user === undefined ? {} : { user }),
    ...(frequencyPenalty === undefined ? {} : { frequency_penalty: frequencyPenalty }),
    ...(presencePenalty === undefined ? {} : { presence_penalty: presencePenalty }),
    ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
    ...(verbosity === undefined ? {} : { verbosity }),
  };
}

const JSON_INSTRUCTION: ChatMessage = { role: 'system', content: 'Answer with one JSON object and nothing else.' };

/** OpenAI and Azure refuse `json_object` unless a message says "JSON", which callers of `json_mode` need not know. */
function withJsonWord(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.some(({ content }) => /json/i.test(content)) ? messages : [JSON_INSTRUCTION, ...messages];
}

/** OpenAI's own reasoning models refuse `max_tokens`; most compatible servers know no other field. */
const lengthFieldOf = perProvider(({ baseUrl }) =>
  URL.parse(baseUrl)?.hostname === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens',
);

/** The JSON body of `POST /chat/completions`. Asks for usage, which a stream does not report by default. */
export function toChatCompletionBody(provider: Provider, call: ProviderCall): string {
  const messages = call.jsonMode ? withJsonWord(call.messages) : call.messages;
  return wellFormedJson({
    model: call.model,
    messages: messages.map(({ role, content }) => ({ role, content })),
    [lengthFieldOf(provider)]: call.maxTokens,
    ...(call.jsonMode ? { response_format: { type: 'json_object' } } : {}),
    ...(call.sampling === undefined ? {} : samplingFields(call.sampling)),
    ...(call.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
}

/** Azure's URLs with an `api-version` take the key in their own header; a bearer token means something else there. */
export function openAiHeaders({ baseUrl, apiKey }: Provider): Record<string, string> {
  if (apiKey === undefined) return {};
  const isAzure = URL.parse(baseUrl)?.searchParams.has('api-version') === true;
  return isAzure ? { 'api-key': apiKey } : { Authorization: `Bearer ${apiKey}` };
}
