import type { Config } from '../../shared/config/settings.ts';
import type { HttpClient } from '../providers/http-client.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import { createHeldWindow } from './held-window.ts';
import { createLocalModerator } from './local/local-moderator.ts';
import { openLocalWindow } from './local/phrase-window.ts';
import type { ModerationPolicy, Moderator, OutputWindow, WindowListener } from './moderator.ts';
import { createOpenAiModerator } from './openai-moderator.ts';

export interface Moderation {
  /** For the submitted messages. */
  moderator: Moderator;
  /** For the answer. */
  openWindow: (policy: ModerationPolicy, listener: WindowListener) => OutputWindow;
}

export interface ModerationEvents {
  /** One check of a moderation backend; milliseconds. */
  'moderation.checked': [backend: string, outcome: 'passed' | 'flagged' | 'failed', durationMs: number];
}

export function createModeration(
  config: Config['moderation'],
  http: HttpClient,
  events: Emitter<ModerationEvents>,
): Moderation {
  const { backend, baseUrl } = config;
  if (backend === 'local' || baseUrl === undefined) {
    const local = createLocalModerator();
    return {
      moderator: measured(local, events),
      openWindow: (policy, listener) => openLocalWindow(local, policy, listener),
    };
  }
  const moderator = measured(createOpenAiModerator(http, { ...config, baseUrl }), events);
  return { moderator, openWindow: (policy, listener) => createHeldWindow(moderator, policy, listener) };
}

/** Emits an event for every check except those that the caller has aborted. */
function measured(moderator: Moderator, events: Emitter<ModerationEvents>): Moderator {
  const { backend } = moderator;
  return {
    backend,
    async check(texts, options) {
      const startedAt = performance.now();
      try {
        const verdict = await moderator.check(texts, options);
        events.emit(
          'moderation.checked',
          backend,
          verdict.flagged ? 'flagged' : 'passed',
          performance.now() - startedAt,
        );
        return verdict;
      } catch (error) {
        if (options?.signal?.aborted !== true)
          events.emit('moderation.checked', backend, 'failed', performance.now() - startedAt);
        throw error;
      }
    },
  };
}
