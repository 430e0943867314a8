import { compileLexicon } from '../../../../workers/moderation/local/lexicon.ts';
import { readPhraseLists } from '../../../../workers/moderation/local/phrase-lists.ts';
import { scanText } from '../../../../workers/moderation/local/scan-text.ts';
import { DEFAULT_MODERATION_POLICY, judge } from '../../../../workers/moderation/moderator.ts';

const lexicon = compileLexicon(readPhraseLists());

/** Checks a text like the local moderator, in one go. */
export function checkSync(text: string) {
  const scores: Record<string, number> = {};
  Array.from(scanText(lexicon, text, scores));
  return judge(scores, DEFAULT_MODERATION_POLICY);
}
