import type { ChatMessage } from '../../contracts/chat-request.ts';

/** Long enough for any subject, too short to hide a second prompt in. */
const VALUE_CHARACTERS_MAX = 200;

export interface ContextSource {
  subject?: string;
  grade?: string;
}

/** The first source that says something; an empty text says nothing. */
function resolve(field: keyof ContextSource, sources: readonly (ContextSource | undefined)[]): string | undefined {
  for (const source of sources) {
    const value = source?.[field]?.trim();
    if (value !== undefined && value !== '') return value;
  }
  return undefined;
}

/** One line, quoted, of limited length: a value cannot pass for an instruction of its own. */
function quote(value: string): string {
  const characters = Array.from(value.replaceAll(/\s+/g, ' ').replaceAll('"', "'"));
  const cut =
    characters.length > VALUE_CHARACTERS_MAX ? [...characters.slice(0, VALUE_CHARACTERS_MAX), '…'] : characters;
  return `"${cut.join('')}"`;
}

/**
 * Subject and grade as one system instruction (contract.md section 4). `sources` in order of precedence: request,
 * entity, tenant; each value is resolved on its own. Undefined where neither is set.
 */
export function contextInstruction(sources: readonly (ContextSource | undefined)[]): ChatMessage | undefined {
  const subject = resolve('subject', sources);
  const grade = resolve('grade', sources);
  if (subject === undefined && grade === undefined) return undefined;
  const parts = [
    ...(subject === undefined ? [] : [`Subject: ${quote(subject)}.`]),
    ...(grade === undefined ? [] : [`Grade level: ${quote(grade)}.`]),
  ];
  return { role: 'system', content: `Context for this conversation. ${parts.join(' ')} Fit the answer to it.` };
}
