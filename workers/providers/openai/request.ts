import type { Sampling } from '../../../shared/contracts/chat-request.ts';
import type { ProviderCall } from '../provider.ts';

function samplingFields({ temperature, topP, stop, seed, user }: Sampling): Record<string, unknown> {
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stop === undefined ? {} : { stop }),
    ...(seed === undefined ? {} : { seed }),
    ...(user === undefined ? {} : { user }),
  };
}

/** The JSON body of `POST /chat/completions`. Usage is asked for, since a stream has none by itself. */
export function toChatCompletionBody(call: ProviderCall): string {
  return JSON.stringify({
    model: call.model,
    messages: call.messages.map(({ role, content }) => ({ role, content })),
    max_tokens: call.maxTokens,
    ...(call.jsonMode ? { response_format: { type: 'json_object' } } : {}),
    ...(call.sampling === undefined ? {} : samplingFields(call.sampling)),
    ...(call.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
}
