import type { ChatRequest } from './chat-request.ts';

/** Characters of a message that are shown. */
const QUOTED_MAX = 200;

/** Ends every answer, so that the shortest question, too, is answered by a stream that can be watched. */
const CLOSING =
  'No model has read this. To hear a real one, start Parley with --local, PROVIDER_URL or OPENAI_API_KEY; docs/guide/quick-start.md says how.';

/** `Subject: "algebra". Grade level: "8".`, in the one instruction that begins like this (docs/spec.md#context). */
const INSTRUCTION = /^Context for this conversation\b/;
const CONTEXT_VALUES = /(Subject|Grade level): "([^"]*)"/g;

/** An answer that says that it is simulated and shows what the request held, as prose and as the fields of an object. */
export function showRequest({ messages, temperature }: Pick<ChatRequest, 'messages' | 'temperature'>): {
  prose: string;
  shown: Record<string, unknown>;
} {
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
