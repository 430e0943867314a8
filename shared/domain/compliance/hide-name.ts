/** A shorter name is a part of many words that mean somebody or something else. */
const ANYWHERE_FROM_CHARACTERS = 4;

/**
 * The text with something else in the place of an entity's name, wherever it stands; a name of three characters or less
 * only where it stands alone: of the entity `1`, `line-1` speaks, and `line-10` does not.
 */
export function hideName(text: string, name: string, instead: string): string {
  if (name === '') return text;
  if (name.length >= ANYWHERE_FROM_CHARACTERS) return text.replaceAll(name, () => instead);
  const literal = name.replaceAll(/[\^$\\.*+?()[\]{}|/]/g, String.raw`\$&`);
  return text.replaceAll(new RegExp(`(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`, 'gu'), () => instead);
}
