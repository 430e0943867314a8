import { putNewest } from '../../shared/domain/bounded-map.ts';
import type { Settings, SettingsByName, SettingsInput } from './settings.ts';
import { mergeSettings, parseSettings, parseSettingsQuery, SettingsError, toSettings } from './settings.ts';

/** A test may invent any number of model names; the settings of this many are remembered. */
const MODELS_MAX = 1_000;

export type ModelSettings = ReturnType<typeof createModelSettings>;

/** A server's settings: the initial ones, later changes, and those in a model name. */
export function createModelSettings(defaults: SettingsInput) {
  const start = parseSettings(defaults);
  const known = new Map<string, { name: string; settings: Settings }>();
  let changes: SettingsInput = {};

  function read(model: string): { name: string; settings: Settings } {
    const mark = model.indexOf('?');
    const name = mark === -1 ? model : model.slice(0, mark);
    if (name === '') throw new SettingsError('model must have a name before its settings, as in sim?chunks=40.');
    const own = mark === -1 ? {} : parseSettingsQuery(model.slice(mark + 1));
    return { name, settings: toSettings(mergeSettings(start, changes, own)) };
  }

  return {
    /** Splits `sim?chunks=40`; the settings after the `?` win over the server's. Throws SettingsError. */
    forModel(model: string): { name: string; settings: Settings } {
      const found = known.get(model) ?? read(model);
      putNewest(known, model, found, MODELS_MAX);
      return found;
    },
    /** Applies settings of unknown origin on top of the server's; null resets a setting to its initial value. */
    change(input: unknown): void {
      changes = { ...changes, ...parseSettings(input) };
      known.clear();
    },
    /** Undoes every change. */
    restore(): void {
      changes = {};
      known.clear();
    },
    current: (): SettingsByName => mergeSettings(start, changes),
  };
}
