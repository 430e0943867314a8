import { linesOf, textsBeside, textsBesideContent } from '../../shared/contracts/message-text.ts';
import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { MODERATION_CATEGORIES, moderationUnavailable, policyOf } from '../moderation/moderator.ts';
import type { ModerationVerdict, Moderator } from '../moderation/moderator.ts';
import { openJsonReader } from '../moderation/text-units.ts';
import type { WorkerEmitter } from './worker-events.ts';
import { Stopped } from './stage.ts';
import type { Assembled, Claimed, ContextValue, Outcome, Stage } from './stage.ts';
import { joinRoles, textOfRow } from '../providers/provider.ts';
import type { Row } from '../providers/provider.ts';

interface PromptToRead {
  /** Undefined if there is neither subject nor grade. */
  instruction: ChatMessage | undefined;
  values: readonly string[];
  /** The messages as the caller sent them. */
  messages: readonly ChatMessage[];
  /** Already moderated with the requests that brought it. */
  history: readonly ChatMessage[];
  submitted: readonly ChatMessage[];
  beside: readonly string[];
}

const FORMAT_CHARACTER = /\p{Cf}/u;
const FORMAT_CHARACTERS = /\p{Cf}+/gu;
/** Invisible doubles of all printable ASCII characters, which many models can read. */
const TAG_CHARACTERS = /[\u{e0020}-\u{e007e}]/gu;
const TAGS_FROM = 0xe0000;

function revealTags(text: string): string {
  return text.replaceAll(TAG_CHARACTERS, (tag) => String.fromCodePoint((tag.codePointAt(0) ?? TAGS_FROM) - TAGS_FROM));
}

/** A text and, if it has format characters, also the text without them and with its tag characters made visible. */
function eachReading(text: string): string[] {
  if (!FORMAT_CHARACTER.test(text)) return [text];
  return [text, text.replaceAll(FORMAT_CHARACTERS, ''), revealTags(text).replaceAll(FORMAT_CHARACTERS, '')];
}

/** A text with JSON in it, and what that says without its escapes. */
function eachReadingOfJson(text: string): string[] {
  return (text.includes('\\') ? [text, openJsonReader()(text)] : [text]).flatMap(eachReading);
}

/** Reads subject and grade as they appear in the instruction, and side by side. */
function readingsOfContext({ instruction, values }: Pick<PromptToRead, 'instruction' | 'values'>): string[] {
  if (instruction === undefined) return [];
  const beside = values.length > 1 ? [values.join(' ')] : [];
  return [...new Set([instruction.content, ...beside].flatMap(eachReading))];
}

/**
 * Finds rows in which stored messages have neighbours of the same role. Each was moderated with its own request, but
 * perhaps not side by side: an entity's requests may run at once, and a turn in between may be deleted.
 */
function storedNeighbours({ history, submitted }: PromptToRead): Row[] {
  if (history.length === 0) return [];
  const stored = new Set(history);
  return joinRoles([...history, ...submitted]).turns.filter(
    ({ messages }) => messages.length > 1 && messages.some((message) => stored.has(message)),
  );
}

/** A row's contents side by side, parts of text also as lines, and behind them what else its messages have. */
function readingsOfRow(row: Row): string[] {
  if (row.messages.every(({ sent }) => sent === undefined)) return eachReading(textOfRow(row));
  const beside = row.messages.flatMap(textsBesideContent);
  const contents = new Set([textOfRow(row), textOfRow(row, linesOf)]);
  return [...contents].flatMap((text) => eachReadingOfJson([text, ...beside].join('\n')));
}

/**
 * Joins consecutive messages of one role into one text. The moderator reads each as it is and with line breaks as
 * spaces, so a joined message need not be read separately as well.
 */
export function readingsOf(prompt: PromptToRead): string[] {
  const { system, turns } = joinRoles(prompt.messages);
  const rows = [...(system.messages.length === 0 ? [] : [system]), ...turns, ...storedNeighbours(prompt)];
  const beside = prompt.beside.flatMap(eachReadingOfJson);
  return [...new Set([...readingsOfContext(prompt), ...rows.flatMap(readingsOfRow), ...beside])];
}

export interface ModerateDeps {
  moderator: Moderator;
  clock: Clock;
  events: WorkerEmitter;
}

const REMEDIES: Record<ContextValue['origin'], string> = {
  request: 'change it and try again',
  entity: 'change the entity and try again',
  tenant: 'ask the administrator to change it, or send another one',
};

function refusalOfMessages(categories: string, what: 'messages were' | 'input was'): ServiceError {
  return new ServiceError(
    'content_policy_violation',
    `The ${what} flagged by content moderation (${categories}); change ${what === 'input was' ? 'it' : 'them'} and try again.`,
  );
}

function refusalOfValue({ field, origin }: ContextValue, categories: string): ServiceError {
  const whose = origin === 'request' ? 'The' : `The ${origin}'s`;
  return new ServiceError(
    'content_policy_violation',
    `${whose} ${field} was flagged by content moderation (${categories}); ${REMEDIES[origin]}.`,
    { param: field },
  );
}

type Check = (run: Claimed, texts: readonly string[]) => Promise<ModerationVerdict>;

/** Fails closed: no verdict, no answer. */
function createCheck(moderator: Moderator): Check {
  return (run, texts) => {
    const { signal } = run.lease;
    const policy = policyOf(run.envelope.tenant.moderation);
    return moderator.check(texts, { policy, signal }).catch((cause: unknown) => {
      if (signal.reason instanceof Stopped) throw signal.reason;
      run.answer.trace.moderation = { backend: moderator.backend, verdict: 'unavailable', categories: [] };
      throw moderationUnavailable(cause);
    });
  };
}

/** Of OpenAI's endpoint; a server may know others. */
const CATEGORIES: readonly string[] = [...new Set<string>(MODERATION_CATEGORIES)]
  .filter((category) => category !== 'test')
  .concat('hate/threatening', 'self-harm/intent', 'violence/graphic')
  .sort();

function toResult({ flagged, categories, scores }: ModerationVerdict) {
  const names = [...new Set([...CATEGORIES, ...Object.keys(scores), ...categories])];
  return {
    flagged,
    categories: Object.fromEntries(names.map((name) => [name, categories.includes(name)])),
    category_scores: Object.fromEntries(names.map((name) => [name, scores[name] ?? 0])),
  };
}

/** Answers a request for verdicts (docs/spec.md#moderations). They are not the request's `text`, so nobody pays. */
export function createClassify(moderator: Moderator): Stage<Claimed, Outcome> {
  const check = createCheck(moderator);
  return async (run) => {
    const results = [];
    for (const message of run.envelope.request.messages)
      results.push(toResult(await check(run, readingsOfRow({ role: 'user', messages: [message] }))));
    run.answer.unsent = [JSON.stringify({ model: moderator.backend, results })];
    return { finishReason: 'stop', usage: { promptTokens: 0, completionTokens: 0 } };
  };
}

/** Runs before any provider sees the request. */
export function createModerate({ moderator, clock, events }: ModerateDeps): Stage<Assembled, Assembled> {
  const check = createCheck(moderator);

  async function refusalOf(run: Assembled, flagged: readonly string[]): Promise<ServiceError> {
    const { context, prompt, envelope } = run;
    const what = envelope.request.task === undefined ? 'messages were' : 'input was';
    const values = context.map(({ text }) => text);
    const categories = flagged.join(', ');
    const verdict = await check(run, readingsOfContext({ instruction: prompt.instruction, values }));
    if (!verdict.flagged) return refusalOfMessages(categories, what);
    for (const value of context.slice(1)) {
      const alone = await check(run, [`${value.field}: ${value.text}`]);
      if (alone.flagged) return refusalOfValue(value, categories);
    }
    const [first] = context;
    return first === undefined ? refusalOfMessages(categories, what) : refusalOfValue(first, categories);
  }

  return async (run) => {
    const { envelope, context, prompt } = run;
    const { trace } = run.answer;
    const { request } = envelope;
    const { messages, task } = request;
    const values = context.map(({ text }) => text);
    const read = () => readingsOf({ ...prompt, values, messages, beside: textsBeside(request) });
    const inputs = () => new Set(messages.flatMap(({ content }) => eachReading(content)));
    const verdict = await check(run, task === undefined ? read() : [...inputs()]);
    const categories = [...verdict.categories];
    trace.moderatedAt = clock.now();
    const result = verdict.flagged ? 'flagged_input' : 'passed';
    trace.moderation = { backend: moderator.backend, verdict: result, categories };
    if (!verdict.flagged) return run;
    events.emit('moderation.flagged', run, 'input', categories);
    throw await refusalOf(run, categories);
  };
}
