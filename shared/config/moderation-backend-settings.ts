/** The settings of moderation, checked. */
export interface ModerationBackendSettings {
  MODERATION_BACKEND: 'local' | 'openai';
  MODERATION_BASE_URL?: string;
  MODERATION_API_KEY?: string;
  MODERATION_MODEL?: string;
  MODERATION_TIMEOUT_MS: number;
}

/** Who reads what goes in and comes out: the word lists of this service, or an endpoint that speaks OpenAI's protocol. */
export type ModerationConfig =
  { backend: 'local' } | { backend: 'openai'; baseUrl: string; apiKey?: string; model?: string; timeoutMs: number };

/** The schema has made sure that `openai` has its endpoint. */
export function moderationOf(settings: ModerationBackendSettings): ModerationConfig {
  const { MODERATION_BASE_URL: url, MODERATION_API_KEY: apiKey, MODERATION_MODEL: model } = settings;
  if (settings.MODERATION_BACKEND === 'local' || url === undefined) return { backend: 'local' };
  return {
    backend: 'openai',
    baseUrl: url,
    timeoutMs: settings.MODERATION_TIMEOUT_MS,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(model === undefined ? {} : { model }),
  };
}
