import { readText } from '../../../shared/infra/http/http-client.ts';
import type { HttpClient } from '../../../shared/infra/http/http-client.ts';
import { withRetries } from '../../../shared/infra/http/retry.ts';
import { refusalOf, toProviderError } from '../../providers/http/call-provider.ts';
import { endpointUrl } from '../../providers/http/endpoint-url.ts';
import { ProviderError } from '../../providers/provider.ts';
import { DEFAULT_MODERATION_POLICY, judge } from '../moderator.ts';
import type { Moderator } from '../moderator.ts';
import { toBatches, toModerationBody } from './request.ts';
import { parseModeration } from './response.ts';
import type { ModerationReport } from './response.ts';

export interface OpenAiModeratorOptions {
  /** Ends in its version segment, as in `https://host/v1`. */
  baseUrl: string;
  apiKey?: string;
  model?: string;
  /** For one call, a second try included. */
  timeoutMs: number;
}

const ANSWER_BYTES_MAX = 1024 * 1024;
/** A connection that was closed meanwhile, or a moment of overload, is not worth refusing a request for. */
const RETRIES = 1;

/** The moderation endpoint of OpenAI or of any server that speaks like it. */
export function createOpenAiModerator(http: HttpClient, options: OpenAiModeratorOptions): Moderator {
  const { apiKey, model, timeoutMs } = options;
  const url = endpointUrl(options.baseUrl, '/moderations');
  const headers: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };

  async function ask(inputs: readonly string[], signal: AbortSignal): Promise<ModerationReport> {
    try {
      const answer = await http.post(url, headers, toModerationBody(inputs, model), signal);
      if (answer.status !== 200) throw await refusalOf(answer);
      return parseModeration(await readText(answer.body, ANSWER_BYTES_MAX), inputs.length);
    } catch (error) {
      throw toProviderError(error, signal);
    }
  }

  async function askInTime(inputs: readonly string[], outer: AbortSignal | undefined): Promise<ModerationReport> {
    outer?.throwIfAborted();
    const controller = new AbortController();
    const timer = setTimeout(() => {
      controller.abort(
        new ProviderError('transient', `The moderation endpoint gave no verdict within ${timeoutMs} ms`),
      );
    }, timeoutMs);
    const onAbort = () => {
      controller.abort(outer?.reason);
    };
    outer?.addEventListener('abort', onAbort, { once: true });
    try {
      return await withRetries(() => ask(inputs, controller.signal), {
        retries: RETRIES,
        mayRetry: (error) => error instanceof ProviderError && error.fault === 'transient',
        askedWaitMs: (error) => (error instanceof ProviderError ? error.retryAfterMs : 0),
        signal: controller.signal,
      });
    } finally {
      clearTimeout(timer);
      outer?.removeEventListener('abort', onAbort);
    }
  }

  return {
    backend: 'openai',
    async check(texts, { policy = DEFAULT_MODERATION_POLICY, signal } = {}) {
      const scores: Record<string, number> = {};
      const flagged = new Set<string>();
      for (const inputs of toBatches(typeof texts === 'string' ? [texts] : texts)) {
        const report = await askInTime(inputs, signal);
        for (const [category, score] of Object.entries(report.scores))
          scores[category] = Math.max(scores[category] ?? 0, score);
        for (const category of report.flagged) flagged.add(category);
        const verdict = judge(scores, policy, flagged);
        // What follows cannot make it harmless again.
        if (verdict.flagged) return verdict;
      }
      return judge(scores, policy, flagged);
    },
  };
}
