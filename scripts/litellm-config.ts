/** LiteLLM's proxy, as the provider tests and the stateful benchmark install it. */
export const LITELLM = {
  requirement: 'litellm[proxy]==1.106.2',
  name: 'LiteLLM',
  program: 'litellm',
  subject: 'LiteLLM',
  folder: 'litellm-venv',
  takes: '2 minutes',
};

/** What each model of the tests answers, by the names that the tests use. */
export const MODELS = {
  /** LiteLLM's own answer. */
  mock: { mock_response: 'Rivers run to the sea.' },
  limited: { mock_response: 'litellm.RateLimitError' },
  broken: { mock_response: 'litellm.InternalServerError' },
} as const;

/**
 * LiteLLM's configuration. Each model `x` has a `via-x`, for which LiteLLM calls itself over HTTP: a mock of its
 * Messages API does not stream, but a server behind it is translated event by event.
 */
export function liteLlmConfig(url: string, masterKey: string): object {
  const models = Object.entries(MODELS).flatMap(([name, params]) => [
    { model_name: name, litellm_params: { model: 'openai/gpt-4o-mini', api_key: 'none', ...params } },
    {
      model_name: `via-${name}`,
      litellm_params: { model: `hosted_vllm/${name}`, api_base: `${url}/v1`, api_key: masterKey },
    },
  ]);
  return { model_list: models, litellm_settings: { num_retries: 0 }, general_settings: { master_key: masterKey } };
}
