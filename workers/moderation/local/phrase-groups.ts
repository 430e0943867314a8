import type { PhraseGroup } from './lexicon.ts';
import { HARASSMENT_PHRASES } from './phrases-harassment.ts';
import { HATE_PHRASES } from './phrases-hate.ts';
import { ILLICIT_VIOLENT_PHRASES } from './phrases-illicit-violent.ts';
import { ILLICIT_PHRASES } from './phrases-illicit.ts';
import { SELF_HARM_PHRASES } from './phrases-self-harm.ts';
import { SEXUAL_PHRASES } from './phrases-sexual.ts';
import { VIOLENCE_PHRASES } from './phrases-violence.ts';

/**
 * Everything that the local backend knows. English only: for other languages use a remote backend.
 *
 * The phrase of the category `test` is harmless and always flagged, so that an operator can try the whole path.
 */
export const PHRASE_GROUPS: readonly PhraseGroup[] = [
  { categories: ['test'], score: 1, phrases: ['parley moderation test'] },
  ...HATE_PHRASES,
  ...HARASSMENT_PHRASES,
  ...SELF_HARM_PHRASES,
  ...SEXUAL_PHRASES,
  ...VIOLENCE_PHRASES,
  ...ILLICIT_VIOLENT_PHRASES,
  ...ILLICIT_PHRASES,
];
