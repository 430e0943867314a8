import type { Role, Sampling } from '../../../shared/contracts/chat-request.ts';
import type { Provider } from '../../../shared/domain/routing/routing.ts';
import { wellFormedJson } from '../../../shared/contracts/well-formed-json.ts';
import { BETWEEN_JOINED, joinRoles, textOfRow } from '../join-roles.ts';
import type { Row } from '../join-roles.ts';
import type { ProviderCall } from '../provider.ts';
import { isBlankText } from './response.ts';

/** The version of the Messages API that this adapter was written for. */
const API_VERSION = '2023-06-01';

type Turn = { role: Role; content: string };

/** The API has no `response_format` for a JSON object without a schema. */
const JSON_INSTRUCTION =
  'Answer with one JSON object and nothing else: no text before or after it, and no code fence around it.';

/** Stand in for the user's words, because the API requires a conversation to begin and end with the user. */
const OPENING = '(The conversation begins.)';
const CONTINUATION = 'Continue.';

const TEMPERATURE_MAX = 1;

function systemOf(system: Row, jsonMode: boolean): string {
  const texts = system.messages.map(({ content }) => content);
  return [...texts, ...(jsonMode ? [JSON_INSTRUCTION] : [])].join(BETWEEN_JOINED);
}

/**
 * Turns that alternate, beginning and ending with the user: consecutive messages of one role are joined, OPENING goes
 * in front if the user does not speak first, and CONTINUATION follows if the assistant speaks last, because current
 * models refuse to continue an answer begun for them.
 */
function turnsOf(rows: readonly Row[]): Turn[] {
  const turns: Turn[] = rows.map((row) => ({ role: row.role, content: textOfRow(row) }));
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: OPENING });
  if (turns.at(-1)?.role === 'assistant') turns.push({ role: 'user', content: CONTINUATION });
  return turns;
}

function stopsOf(stop: Sampling['stop']): string[] {
  return stop === undefined ? [] : [stop].flat();
}

/** The stop sequences that the API does not accept. */
export function blankStops(sampling: Sampling | undefined): string[] {
  return stopsOf(sampling?.stop).filter(isBlankText);
}

/** `seed` is not supported, and current models take only one of `temperature` and `top_p`: the temperature wins. */
function samplingFields({ temperature, topP, stop, user }: Sampling): Record<string, unknown> {
  const stops = stopsOf(stop).filter((text) => !isBlankText(text));
  return {
    ...(temperature === undefined ? {} : { temperature: Math.min(temperature, TEMPERATURE_MAX) }),
    ...(topP === undefined || temperature !== undefined ? {} : { top_p: topP }),
    ...(stops.length === 0 ? {} : { stop_sequences: stops }),
    ...(user === undefined ? {} : { metadata: { user_id: user } }),
  };
}

/** The JSON body of `POST /messages`. */
export function toMessagesBody(call: ProviderCall): string {
  // The API refuses text blocks of nothing but white space; joinRoles leaves these out.
  const { system: systemRow, turns } = joinRoles(call.messages);
  const system = systemOf(systemRow, call.jsonMode);
  return wellFormedJson({
    model: call.model,
    max_tokens: call.maxTokens,
    ...(system === '' ? {} : { system }),
    messages: turnsOf(turns),
    ...(call.sampling === undefined ? {} : samplingFields(call.sampling)),
    ...(call.stream ? { stream: true } : {}),
  });
}

export function anthropicHeaders({ apiKey }: Provider): Record<string, string> {
  return { 'anthropic-version': API_VERSION, ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }) };
}
