import { balanceDrift } from './measures/balance-drift.ts';
import { besideBatch } from './measures/beside-batch.ts';
import { exactBudget } from './measures/exact-budget.ts';
import { exactLimits } from './measures/exact-limits.ts';
import { fairness } from './measures/fairness.ts';
import { recovery } from './measures/recovery.ts';
import { resume } from './measures/resume.ts';
import type { Measure } from './measure.ts';

export const MEASURES: readonly Measure[] = [
  exactLimits,
  exactBudget,
  balanceDrift,
  resume,
  fairness,
  besideBatch,
  recovery,
];
