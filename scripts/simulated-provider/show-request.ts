import { turnOf } from './call-tools.ts';
import type { ChatRequest, Medium, Message } from './chat-request.ts';

/** Characters of a message that are shown. */
const QUOTED_MAX = 200;

/** Ends every answer, so that the shortest question, too, is answered by a stream that can be watched. */
const CLOSING =
  'No model has read this. To hear a real one, start Parley with --local, PROVIDER_URL or OPENAI_API_KEY; docs/guide/quick-start.md says how.';

/** `Subject: "algebra". Grade level: "8".`, in the one instruction that begins like this (docs/spec.md#context). */
const INSTRUCTION = /^Context for this conversation\b/;
const CONTEXT_VALUES = /(Subject|Grade level): "([^"]*)"/g;

const NOUNS: Readonly<Record<Medium, string>> = { image: 'image', audio: 'recording', file: 'file' };

/** Sentences about what there is beside text: the results of this turn's tools, and images, recordings and files. */
export function noticedIn(messages: readonly Message[]): { results: string[]; sight: string[] } {
  const turn = turnOf(messages);
  const names = new Map(turn.flatMap(({ calls = [] }) => calls.map(({ id, name }) => [id, name] as const)));
  const results = turn.flatMap(({ callId, text }) =>
    callId === undefined ? [] : [`The tool ${names.get(callId) ?? ''} says: “${shorten(text)}”`],
  );
  const media = messages.flatMap(({ media: held = [] }) => held);
  const counts = [...new Set(media)].map((medium) => {
    const number = media.filter((one) => one === medium).length;
    return `${number} ${NOUNS[medium]}${number === 1 ? '' : 's'}`;
  });
  return { results, sight: counts.length === 0 ? [] : [`I see ${counts.join(' and ')}.`] };
}

/** An answer that says that it is simulated and shows what the request held, as prose and as the fields of an object. */
export function showRequest({
  messages,
  temperature,
  tools,
}: Pick<ChatRequest, 'messages' | 'temperature' | 'tools'>): { prose: string; shown: Record<string, unknown> } {
  const { results, sight } = noticedIn(messages);
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const asked = shorten(messages[last]?.text ?? '');
  const earlier = messages.slice(0, Math.max(0, last)).filter(({ role }) => role === 'user' || role === 'assistant');
  const before = earlier.filter(({ role }) => role === 'user').map(({ text }) => shorten(text));
  const told = messages.filter(({ role }) => role === 'system' || role === 'developer').map(({ text }) => text);
  const [context, system] = [
    told.filter((text) => INSTRUCTION.test(text)),
    told.filter((text) => !INSTRUCTION.test(text)),
  ];
  const values = context.flatMap((text) => [...text.matchAll(CONTEXT_VALUES)]);
  const named = values.map(([, name = '', value = '']) => [name.toLowerCase(), value] as const);
  return {
    prose: [
      `(simulated) You asked: “${asked}”`,
      `I remember ${count(earlier.length)} of this conversation${before.length === 0 ? '.' : `; you said before: “${before.at(-1)}”`}`,
      ...named.map(([name, value]) => `The ${name} is “${value}”.`),
      ...system.map((text) => `A system message says: “${shorten(text)}”`),
      ...sight,
      ...results,
      ...(tools.length === 0 || results.length > 0
        ? []
        : [`I may call ${tools.map(({ name }) => name).join(', ')}; the mark simulate-tool in a message makes me.`]),
      ...(temperature === null ? [] : [`The temperature is ${temperature}.`]),
      CLOSING,
    ].join(' '),
    shown: {
      simulated: true,
      you_asked: asked,
      earlier_messages: earlier.length,
      ...(before.length === 0 ? {} : { you_said_before: before.at(-1) }),
      ...Object.fromEntries(named.map(([name, value]) => [name.replace(' ', '_'), value])),
      ...(system.length === 0 ? {} : { system_messages: system.map(shorten) }),
      ...(sight.length === 0 ? {} : { sight: sight.join(' ') }),
      ...(results.length === 0 ? {} : { tools: results }),
      ...(temperature === null ? {} : { temperature }),
      note: CLOSING,
    },
  };
}

const count = (messages: number) => `${messages === 0 ? 'no' : messages} earlier message${messages === 1 ? '' : 's'}`;

function shorten(text: string): string {
  const characters = Array.from(text.replaceAll(/\s+/g, ' ').trim());
  return characters.length <= QUOTED_MAX ? characters.join('') : `${characters.slice(0, QUOTED_MAX).join('')}…`;
}
