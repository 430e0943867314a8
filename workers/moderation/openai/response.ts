import { isRecord, parseObject } from '../../providers/http/parse-json.ts';
import { ProviderError } from '../../providers/provider.ts';

/** What the endpoint said of the texts of one call, all together. */
export interface ModerationReport {
  /** The highest score of each category, 0 to 1. */
  scores: Record<string, number>;
  /** The categories that the endpoint flags by its own measure. */
  flagged: Set<string>;
}

/** Stands for a server that flags a text and says no more. */
const UNNAMED = 'unspecified';

function readResult(result: unknown, report: ModerationReport): void {
  if (!isRecord(result) || typeof result['flagged'] !== 'boolean')
    throw new ProviderError('transient', 'The moderation endpoint sent a result without a verdict');
  const categories = isRecord(result['categories']) ? result['categories'] : {};
  const scores = isRecord(result['category_scores']) ? result['category_scores'] : {};
  const raise = (category: string, score: number) => {
    report.scores[category] = Math.max(report.scores[category] ?? 0, score);
  };
  for (const [category, score] of Object.entries(scores)) if (typeof score === 'number') raise(category, score);
  const flagged = Object.keys(categories).filter((category) => categories[category] === true);
  if (result['flagged'] && flagged.length === 0 && Object.keys(scores).length === 0) flagged.push(UNNAMED);
  for (const category of flagged) {
    report.flagged.add(category);
    // Some servers name categories without scores.
    if (typeof scores[category] !== 'number') raise(category, 1);
  }
}

/** Throws a ProviderError unless there is a result for each of the `count` inputs. */
export function parseModeration(json: string, count: number): ModerationReport {
  const { results } = parseObject(json);
  if (!Array.isArray(results) || results.length !== count)
    throw new ProviderError('transient', 'The moderation endpoint did not answer for every text');
  const report: ModerationReport = { scores: {}, flagged: new Set() };
  for (const result of results as unknown[]) readResult(result, report);
  return report;
}
